// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Nova makes an instance for every request. What makes a creation unique here are its ports: their MAC addresses follow
// from the token, and Neutron takes each once in a network; they are on record before an instance is asked for; no two
// instances can have one port. So of two instances that were made of one token only one ever runs; the others fail, and go with
// their Machine. The note that says who asks for it (launching) makes that rare, no more: when several write it at the same moment,
// Neutron tries those again that lost, and then without their condition (seen on Zed: eight writes of one revision, all accepted).
//
//	ports          one request for all of them; a second one is refused, and finds those of the first
//	floating IP    belongs to the first port from then on
//	trunks         a port is the parent of one at most
//	server group   one by its name, which outlives the instance
//	volumes        claimed, then made: see launching
//	instance       likewise

// launchFor is how long a request for an instance or a volume is waited for before it is sent again. Whatever is made
// later than that is the loser for the ports.
const launchFor = time.Minute

// reserve is the part of a call's time that the last request of a step may need.
const reserve = 4 * time.Second

// progress is what a creation has made so far: the ids of its ports, in the order of the spec. Refused is the claim of the latest
// request that nothing comes of, because the cloud said so: whoever knows that need not wait for the claim to run out. Made is the latest
// thing besides ports that was made, which nobody reads: after it the next call need not wait.
type progress struct {
	Ports   []string `json:"ports"`
	Refused string   `json:"refused,omitempty"`
	Made    string   `json:"made,omitempty"`
}

func (p progress) record() []byte {
	text, err := json.Marshal(p)
	if err != nil { // strings only
		return nil
	}
	return text
}

// Create implements [provider.Driver].
func (d *driver) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	a := attempt{driver: d, ref: r}
	if err := json.Unmarshal(resolved, &a.wanted); err != nil || len(a.wanted.Ports) == 0 {
		return provider.Instance{}, provider.Errorf(provider.Invalid, "create %s: what was resolved cannot be read", r.Name)
	}
	ctx, cancel, c, err := d.connect(ctx)
	defer cancel()
	a.caller = c
	var in provider.Instance
	if err == nil {
		in, err = a.step(ctx)
	}
	if err != nil {
		return provider.Instance{Progress: a.after()}, creating(err)
	}
	return in, nil
}

// attempt is one call to Create.
type attempt struct {
	*driver
	caller
	ref     provider.Ref
	wanted  wanted
	ports   []port // as the spec has them
	refused string // see progress
	latest  string // see progress.Made
}

// after returns the progress after a step that failed, or nil where it is as it was.
func (a *attempt) after() []byte {
	var p progress
	if a.refused == "" || json.Unmarshal(a.ref.Progress, &p) != nil {
		return nil
	}
	p.Refused = a.refused
	return p.record()
}

// step does what is missing, until something has to be recorded or waited for.
func (a *attempt) step(ctx context.Context) (provider.Instance, error) {
	made, err := a.servers(ctx, tag(tagUID, string(a.ref.UID)), tag(tagCluster, a.tags.cluster))
	if err != nil {
		return provider.Instance{}, err
	}
	if in, ok, err := a.existing(ctx, made); ok || err != nil {
		return in, err
	}
	if recorded, err := a.havePorts(ctx, made); err != nil || !recorded {
		return a.incomplete(), err
	}
	if changed, err := a.dressPorts(ctx); err != nil || changed {
		a.latest = "floating IP and trunks"
		return a.incomplete(), err
	}
	group, known, err := a.haveGroup(ctx)
	if err != nil || !known {
		return a.incomplete(), err
	}
	disks, ready, err := a.haveVolumes(ctx)
	if err != nil || !ready {
		return a.incomplete(), err
	}
	return a.boot(ctx, disks, group)
}

// existing returns the instance of the token. Of several the one that has the ports is it, else the one that may get
// them, else the oldest.
func (a *attempt) existing(ctx context.Context, made []server) (provider.Instance, bool, error) {
	mine := slices.DeleteFunc(slices.Clone(made), func(s server) bool { return valueOf(s.Tags, tagToken) != a.ref.Token })
	if len(mine) == 0 {
		return provider.Instance{}, false, nil
	}
	s := slices.MinFunc(mine, func(x, y server) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
	})
	if s.deleting() {
		return provider.Instance{}, true, provider.Errorf(provider.NotFound, "instance %s of this token is being removed", s.ID)
	}
	in, err := a.accepted(ctx, s)
	return in, true, err
}

func rank(s server) int {
	switch {
	case s.deleting():
		return 2
	case s.Status == "ERROR":
		return 1
	}
	return 0
}

func (a *attempt) incomplete() provider.Instance {
	p := progress{Ports: []string{}, Refused: a.refused, Made: a.latest}
	for _, have := range a.ports {
		p.Ports = append(p.Ports, have.ID)
	}
	return provider.Instance{
		UID: a.ref.UID, Token: a.ref.Token, Name: a.ref.Name, Type: a.wanted.FlavorName, Region: a.driver.session.cloud.region,
		State: provider.StateIncomplete, Progress: p.record(),
	}
}

// launch sends a request that must not be sent twice. A definite no is kept with the progress; after every other error the
// request may have worked, and the claim stands.
func (a *attempt) launch(ctx context.Context, what string, send func() error) error {
	c, err := a.launching(ctx, what)
	if err != nil {
		return err
	}
	if err = send(); err != nil && provider.CodeOf(err).Definite() {
		a.refused = c.String()
	}
	return err
}

// launching claims the right to send such a request, or says until when somebody else has it: a note in the first port's
// description, which is changed by compare-and-swap. Whoever finds that the thing exists needs no claim; a claim that
// led to nothing is taken over after launchFor, or at once if that is known. A port changes for other reasons as well,
// such as tags: then it is read again.
func (a *attempt) launching(ctx context.Context, what string) (claim, error) {
	const tries = 5
	p := a.ports[0]
	for range tries {
		mine, other := claim{what, time.Now()}, readClaim(p.Description)
		if mine.String() == a.refused { // what is known of one request is not known of the next
			mine.at = mine.at.Add(time.Second)
		}
		if age := mine.at.Sub(other.at); other.what == what && age.Abs() < launchFor && other.String() != a.refused {
			return claim{}, provider.ErrorAfter(provider.Unknown, launchFor-age.Abs(), "create %s: it was asked for %v ago, and nothing is there yet", what, age.Round(time.Second))
		}
		won, err := a.describe(ctx, p, writeClaim(a.wanted.Ports[0].Body.Description, mine))
		if won || err != nil {
			return mine, err
		}
		if p, err = a.port(ctx, p.ID); err != nil {
			return claim{}, err
		}
	}
	return claim{}, provider.Errorf(provider.Unknown, "create %s: port %s does not stand still", what, p.ID)
}
