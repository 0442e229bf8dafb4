// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	// deniedFor is how long a cloud's no to these credentials is believed: nothing but a person changes it, and who asks
	// again and again is locked out. New credentials are tried at once.
	deniedFor = time.Minute
	// deniedToAll is how many have to be denied the same call in a row to believe that it is denied to everybody.
	deniedToAll = 3
	// closeTimeout bounds what is spent on a driver that nobody needs any more.
	closeTimeout = 2 * time.Second
)

// patient is a driver that does not repeat a call that was denied a moment ago. What is denied to one call may be
// allowed to another, and what is denied to one spec, or about one instance, to others: a role that may not be passed, a
// folder that may not be written. Its errors tell no secrets, and that the driver panics is one.
type patient struct {
	provider.Driver
	clouds  *Clouds
	account string // its key
	secrets *unspoken
	mu      sync.Mutex
	denied  map[string]*denials // by call
}

// denials are those of one call.
type denials struct {
	to   map[string]denial // by what it was made for
	row  map[string]bool   // for what it was denied since it was last allowed
	last denial
}

// standing returns the denial to whoever makes the call for this, or to everybody.
func (d *denials) standing(of string) error {
	if err := d.to[of].standing(); err != nil || len(d.row) < deniedToAll {
		return err
	}
	return d.last.standing()
}

// note remembers what a call came to. Who is told that there is nothing was let in; other errors say nothing about it.
func (d *denials) note(of string, err error) {
	if err == nil || provider.CodeOf(err) == provider.NotFound {
		delete(d.to, of)
		clear(d.row)
	}
	if now := denialOf(err); now.err != nil {
		if len(d.to) >= mostAnswers {
			clear(d.to)
		}
		d.to[of], d.last = now, now
		if len(d.row) < deniedToAll {
			d.row[of] = true
		}
	}
}

// denial is a no to the credentials, or nothing.
type denial struct {
	err   error
	until time.Time
}

// denialOf returns the denial that an error is, if it is one.
func denialOf(err error) denial {
	if provider.CodeOf(err) != provider.Denied {
		return denial{}
	}
	return denial{err, time.Now().Add(deniedFor)}
}

// unsentError is a denial of a moment ago in place of a call: the cloud was not asked, so it proves nothing about what
// the call was for.
type unsentError struct{ error }

// Unwrap returns the denial.
func (e unsentError) Unwrap() error { return e.error }

// standing returns the error of a denial that is still believed, with the time to wait, or nil.
func (d denial) standing() error {
	wait := time.Until(d.until)
	if d.err == nil || wait <= 0 {
		return nil
	}
	return unsentError{provider.ErrorAfter(provider.Denied, wait, "%w", d.err)}
}

// of returns what is known of a call. The caller has the lock.
func (p *patient) of(call string) *denials {
	if p.denied == nil {
		p.denied = map[string]*denials{}
	}
	if p.denied[call] == nil {
		p.denied[call] = &denials{to: map[string]denial{}, row: map[string]bool{}}
	}
	return p.denied[call]
}

// unlessDenied makes a call for something, unless it was denied a moment ago; the error is then the same, with the time
// to wait.
func unlessDenied[T any](p *patient, call, of string, f func() (T, error)) (T, error) {
	p.mu.Lock()
	err := p.of(call).standing(of)
	p.mu.Unlock()
	if err != nil {
		var none T
		return none, err
	}
	answer, err := survived(p.clouds, p.account, call, p.secrets, f)
	err = discreet(err, p.secrets)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(call).note(of, err)
	return answer, err
}

// named is what a call that changes one instance is made for. Who may look at one may look at all.
func named(r provider.Ref) string { return string(r.UID) + " " + r.ID }

func (p *patient) Resolve(ctx context.Context, spec json.RawMessage) (json.RawMessage, error) {
	return unlessDenied(p, "resolve", string(spec), func() (json.RawMessage, error) { return p.Driver.Resolve(ctx, spec) })
}

func (p *patient) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	in, err := unlessDenied(p, "create", string(resolved), func() (provider.Instance, error) { return p.Driver.Create(ctx, r, resolved) })
	in.Message = p.secrets.Replace(in.Message)
	return in, err
}

func (p *patient) Find(ctx context.Context, r provider.Ref) ([]provider.Instance, error) {
	found, err := unlessDenied(p, "find", "", func() ([]provider.Instance, error) { return p.Driver.Find(ctx, r) })
	return p.discreet(found), err
}

func (p *patient) List(ctx context.Context) ([]provider.Instance, error) {
	all, err := unlessDenied(p, "list", "", func() ([]provider.Instance, error) { return p.Driver.List(ctx) })
	return p.discreet(all), err
}

// discreet returns instances without the secrets that the cloud's words about them have. The driver's own stay as they are.
func (p *patient) discreet(instances []provider.Instance) []provider.Instance {
	copied := false
	for i, in := range instances {
		text := p.secrets.Replace(in.Message)
		if text == in.Message {
			continue
		}
		if !copied {
			instances, copied = slices.Clone(instances), true
		}
		instances[i].Message = text
	}
	return instances
}

func (p *patient) Delete(ctx context.Context, r provider.Ref) error {
	_, err := unlessDenied(p, "delete", named(r), func() (struct{}, error) { return struct{}{}, p.Driver.Delete(ctx, r) })
	return err
}

func (p *patient) InstanceTypes(ctx context.Context) ([]provider.InstanceType, error) {
	return unlessDenied(p, "types", "", func() ([]provider.InstanceType, error) { return p.Driver.InstanceTypes(ctx) })
}

// power powers an instance off and on, or does one half of it, with drivers that can.
func (p *patient) power(ctx context.Context, r provider.Ref, to provider.Power) error {
	cycler, cycles := p.Driver.(provider.PowerCycler)
	switcher, switches := p.Driver.(provider.PowerSwitch)
	call, do := "power-cycle", func() error { return provider.Errorf(provider.Invalid, "this cloud cannot power-cycle") }
	switch {
	case to == provider.PowerHeld && switches:
		call, do = "power off", func() error { return switcher.PowerOff(ctx, r) }
	case to == provider.PowerOn && switches:
		call, do = "power on", func() error { return switcher.PowerOn(ctx, r) }
	case to == "" && cycles:
		do = func() error { return cycler.PowerCycle(ctx, r) }
	}
	_, err := unlessDenied(p, call, named(r), func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Update implements [provider.Updater] for drivers that do.
func (p *patient) Update(ctx context.Context, r provider.Ref, tags map[string]string) error {
	updater, can := p.Driver.(provider.Updater)
	if !can {
		return provider.Errorf(provider.Invalid, "this cloud cannot change tags")
	}
	_, err := unlessDenied(p, "update", named(r), func() (struct{}, error) { return struct{}{}, updater.Update(ctx, r, tags) })
	return err
}

// Tags implements [provider.Updater] for drivers that do; of the others it is empty.
func (p *patient) Tags(spec json.RawMessage) (map[string]string, error) {
	updater, can := p.Driver.(provider.Updater)
	if !can {
		return nil, nil
	}
	return survived(p.clouds, p.account, "tags", p.secrets, func() (map[string]string, error) { return updater.Tags(spec) })
}

// Identity implements [provider.Identified] for drivers that do; of the others it is empty.
func (p *patient) Identity(ctx context.Context) (string, error) {
	identified, can := p.Driver.(provider.Identified)
	if !can {
		return "", nil
	}
	return unlessDenied(p, "identity", "", func() (string, error) {
		owner, err := identified.Identity(ctx)
		if err == nil && len(owner) > maxName {
			return "", provider.Errorf(provider.Unknown, "the cloud says that the account is called %.20q… and more, of %d characters, of which there may be %d", owner, len(owner), maxName)
		}
		return owner, err
	})
}

// Ended implements [provider.Ended] for drivers that do; of the others it is empty.
func (p *patient) Ended(ctx context.Context, r provider.Ref) (string, error) {
	ended, can := p.Driver.(provider.Ended)
	if !can {
		return "", nil
	}
	why, err := unlessDenied(p, "ended", "", func() (string, error) { return ended.Ended(ctx, r) })
	return p.secrets.Replace(why), err
}

// Stock implements [provider.Stocked] for drivers that do.
func (p *patient) Stock(ctx context.Context, spec json.RawMessage) (provider.Stock, error) {
	stocked, can := p.Driver.(provider.Stocked)
	if !can {
		return provider.Stock{}, provider.Errorf(provider.Invalid, "this cloud has no stock")
	}
	return unlessDenied(p, "stock", "", func() (provider.Stock, error) { return stocked.Stock(ctx, spec) })
}

// Close implements [provider.Closer] for drivers that do. It only tidies up, so that nobody waits for it for long.
func (p *patient) Close(ctx context.Context) error {
	closer, can := p.Driver.(provider.Closer)
	if !can {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_, err := survived(p.clouds, p.account, "close", p.secrets, func() (struct{}, error) { return struct{}{}, closer.Close(ctx) })
	return discreet(err, p.secrets)
}

// slot holds one account that is being opened, or was. Who wants another account does not wait for it.
type slot struct {
	turn    chan struct{} // holds one while somebody opens it, or closes it
	used    time.Time     // when it was last asked for; of the lock of all
	version string        // of the credentials
	done    bool
	account account
	refused denial
}

// take waits for the turn, as long as ctx lasts.
func (o *slot) take(ctx context.Context) error {
	select {
	case o.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// peek returns the account if it is open with this version of its credentials, and nobody is about to change that.
func (o *slot) peek(version string) (a account, open bool) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
		return o.account, o.done && o.version == version
	default:
		return a, false
	}
}

// get returns the account for a version of its credentials, and opens it if that is not done yet.
func (o *slot) get(ctx context.Context, version string, open func() (account, error)) (account, error) {
	if err := o.take(ctx); err != nil {
		return account{}, err
	}
	defer func() { <-o.turn }()
	if o.version != version {
		if o.done {
			_ = o.account.driver.Close(ctx) // nobody depends on it
		}
		o.version, o.done, o.refused = version, false, denial{}
	}
	if o.done {
		return o.account, nil
	}
	if err := o.refused.standing(); err != nil {
		return account{}, err
	}
	a, err := open()
	o.account, o.done, o.refused = a, err == nil, denialOf(err)
	return a, err
}

// close closes the account, if it is open.
func (o *slot) close(ctx context.Context) error {
	if err := o.take(ctx); err != nil {
		return err
	}
	defer func() { <-o.turn }()
	if !o.done {
		return nil
	}
	o.done = false
	return o.account.driver.Close(ctx)
}
