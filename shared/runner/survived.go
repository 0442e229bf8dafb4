// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// survived makes one call of a driver. That it panics, which is a fault of ours, is the error of this call alone and proves nothing:
// what the call was for may have happened (R-B02, R-B03). One poison object delays no other (2c, R-L4).
func survived[T any](c *Clouds, account, call string, secrets *unspoken, f func() (T, error)) (answer T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = c.panicked(account, call, secrets, v)
		}
	}()
	return f()
}

// accountOf returns the region and the Secret that a spec names.
func (c *Clouds) accountOf(p provider.Provider, spec json.RawMessage) (region, secret string, err error) {
	_, err = survived(c, p.Name, "read the spec", nil, func() (_ struct{}, err error) {
		region, secret, err = p.Account(spec)
		return struct{}{}, err
	})
	return region, secret, err
}

// panicked counts a panic that was recovered just now, logs the stack, once in five minutes, and returns the error.
func (c *Clouds) panicked(account, call string, secrets *unspoken, v any) error {
	p := beside.Caught(v)
	if c.Fatal != nil && c.Fatal(p.Value) {
		panic(v)
	}
	c.Metrics.Panicked()
	text := secrets.Replace(fmt.Sprint(p.Value))
	if c.Log != nil && c.told.fresh(account+" "+call+" "+plan.Gist(text), time.Now(), toldFor) {
		c.Log.Error("a driver panicked", keyAccount, account, keyCall, call, keyError, text, keyStack, secrets.Replace(p.Stack))
	}
	return provider.Errorf(provider.Unknown, "%s: the driver panicked: %s", call, text)
}
