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

// poisoned takes a panic over one object, which is a fault of ours: all others are decided about, and the request about this one has not
// succeeded. It is counted, told of the object, and logged with its stack, both once in five minutes.
func (i *invocation) poisoned(o plan.Object, v any) {
	p := beside.Caught(v)
	i.Metrics.Panicked()
	i.unfinished = true
	note := plan.Warning(o, "ReconcileError", fmt.Sprintf("%s panicked over it, which is a fault of ours, and does nothing to it: %v", i.Function.Name, p.Value)).From(i.Function.Name)
	i.poison = append(i.poison, note)
	logged := note
	logged.Reason, logged.Message = keyStack, plan.Gist(note.Message)
	if i.told.fresh(logged, time.Now(), toldFor) {
		i.log.Error("panic", keyObject, plan.Name(note.Object.Kind, note.Object.Namespace, note.Object.Name), keyError, p.Value, keyStack, p.Stack)
	}
}
