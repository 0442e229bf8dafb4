// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Nova accepts a request for an instance before it looks for a host. That there is none it says on the instance, a moment later. So an
// instance counts as made once it has a host; until then its attempt goes on, and a shortage is one like every other: the
// instance goes, its ports stay, the same attempt asks again later (SPEC E2, E18).

// placeWithin is how long an attempt waits for that: usually it takes a second or two. An instance that has no host after it
// is the Machine's all the same.
const placeWithin = time.Minute

// placing reports whether Nova is still looking for a host for s, or has found none and has yet to say why: it does so a moment
// after the state.
func (s server) placing() bool {
	looking := s.Status == "BUILD" && s.Task == "scheduling"
	untold := s.Status == "ERROR" && s.Task == "" && s.Fault.Message == "" && !s.launched()
	return (looking || untold) && time.Since(s.Created).Abs() < placeWithin
}

// launched reports whether s has run.
func (s server) launched() bool { return s.Launched != nil && *s.Launched != "" }

// roomless reports whether s will never run because nothing had room for it.
func (s server) roomless() bool {
	return s.state() == provider.StateFailed && shortage.MatchString(s.Fault.Message)
}

// accepted returns what became of an instance that Nova accepted. It waits a little for its host.
func (a *attempt) accepted(ctx context.Context, s server) (provider.Instance, error) {
	if len(a.ref.Progress) == 0 { // nobody knows its ports: nothing could go on with them
		return a.instance(s), nil
	}
	for s.placing() {
		if !pause(ctx, time.Second/2) {
			return a.waiting(), nil
		}
		now, err := a.caller.server(ctx, s.ID)
		if err != nil {
			return a.waiting(), nil //nolint:nilerr // it was accepted: whatever is wrong, the next call looks again
		}
		s = now
	}
	if s.roomless() {
		return provider.Instance{}, a.withdraw(ctx, s)
	}
	return a.instance(s), nil
}

// waiting is what an attempt looks like whose instance has no host yet.
func (a *attempt) waiting() provider.Instance {
	in := a.incomplete()
	in.Progress = a.ref.Progress
	return in
}

// withdraw removes an instance that there was no room for, and says so. The right to ask for another one ends with it; where
// that cannot be read it runs out by itself.
func (a *attempt) withdraw(ctx context.Context, s server) error {
	if err := a.remove(ctx, a.compute, "delete instance "+s.ID, "servers/"+s.ID); err != nil {
		return err
	}
	var p progress
	if json.Unmarshal(a.ref.Progress, &p) == nil && len(p.Ports) > 0 {
		if first, err := a.port(ctx, p.Ports[0]); err == nil {
			a.refused = readClaim(first.Description).String()
		}
	}
	return provider.Errorf(provider.Exhausted, "%s (flavor %s, %s): add hosts, or ask for another flavor or availability zone",
		shorten(s.Fault.Message), a.wanted.FlavorName, cmp.Or(a.wanted.Zone, "any availability zone"))
}
