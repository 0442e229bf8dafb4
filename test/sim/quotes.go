// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

// entrusted returns a provider whose cloud knows the credentials of whoever opens an account, as a real one does.
func (p *Play) entrusted(c provider.Provider) provider.Provider {
	open := c.Open
	c.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		p.keys[a.Key()] = string(a.Credentials["key"])
		return open(ctx, a)
	}
	return c
}

// quoted returns what a call ends with in the words of a cloud, or of a library, that quotes the key which it was sent (R-S13). Where a
// connection breaks while an instance is looked for, the driver panics with such words.
func (p *Play) quoted(c cloud.Call, err error) error {
	key := p.keys[c.Account]
	switch {
	case err == nil || key == "":
		return err
	case c.Op == cloud.OpFind && errors.Is(err, errFault):
		panic(fmt.Sprintf("no answer to https://cloud/?key=%s&call=%s", key, c.Op))
	}
	return fmt.Errorf("https://cloud/?key=%s&call=%s: %w", key, c.Op, err)
}
