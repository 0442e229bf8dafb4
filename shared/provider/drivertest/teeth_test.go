// SPDX-License-Identifier: Apache-2.0

package drivertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
)

// broken is a good driver with one thing wrong.
type broken struct {
	provider.Driver
	cloud *memory.Cloud
	wrong string
	mark  types.UID
}

// wrongs are what is wrong, each with the test that must notice.
var wrongs = map[string]string{
	"accepts any spec":          "a spec that can never work is invalid and says where",
	"writes while it resolves":  "resolve changes nothing",
	"ignores tokens":            "create repeated makes nothing more",
	"races":                     "create at the same time makes one instance",
	"loses the tag":             "create makes an instance that carries the tags",
	"forgets the mark":          "what is made carries the mark of its cluster",
	"hides others' marks":       "a mark of another cluster with the same id hides nothing",
	"hides the token":           "two attempts of a machine are told apart",
	"calls all exhausted":       "create makes an instance that carries the tags",
	"calls exhausted invalid":   "exhausted stock is said and heals",
	"finds by name":             "find never goes by name",
	"finds an error for nobody": "find of what was never created is empty",
	"tells no addresses":        "addresses hold the name before the node registers",
	"lists every cluster":       "list has nothing of another cluster",
	"lists one":                 "list has everything of the cluster",
	"hides what is nobody's":    "an instance of the cluster without a machine's tag is listed as nobody's",
	"deletes nothing":           "delete by id",
	"never knew":                "delete of what was never created is NotFound",
	"deletes by tag always":     "delete by id alone leaves the machine's other instance",
	"deletes any id":            "delete never takes another machine's instance for its id",
	"deletes the recorded only": "delete by tag takes every instance of the machine",
	"forgets the attempt":       "delete of one attempt leaves what another made",
	"believes every read":       "delete of what no read shows yet leaves nothing",
	"drops tags":                "tags are added and changed",
	"tags any id":               "update never takes another machine's instance for its id",
	"finds by tag only":         "find without a tag goes by the ids, whosever tag the instance carries",
	"makes it again":            "a token never makes a second instance",
	"cycles any id":             "power-cycle never takes another machine's instance for its id",
	"cycles nobody":             "power-cycle of what is not there is NotFound",
	"holds nothing off":         "an instance is held off until it is let go",
	"lets nothing go":           "an instance is held off until it is let go",
	"switches any id":           "power of what is not there is NotFound",
	"forgets a create":          "the horizon covers an invocation, and without tokens the clocks",
	"forgets without tokens":    "the horizon covers an invocation, and without tokens the clocks",
	"cycles without its codes":  "a call that has ended already is an error with a code",
	"tells accounts at random":  "the account is told the same whoever asks, and nothing is written",
	"ends what runs":            "nothing ended that is there, or never was",
	"forgets the codes":         "a call that has ended already is an error with a code",
	"ignores its context":       "a call that has ended already is an error with a code",
	"has unsorted types":        "instance types are sorted and have capacity",
}

const variable = "DRIVERTEST_WRONG"

// TestSuiteNoticesWhatIsWrong runs the suite on each broken driver, in a process of its own because it must fail.
func TestSuiteNoticesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for wrong, notices := range wrongs {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), variable+"="+wrong)
			out, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); !failed {
				t.Fatalf("the suite passed: %v\n%s", err, out)
			}
			if want := "--- FAIL: TestBroken/" + strings.ReplaceAll(notices, " ", "_"); !strings.Contains(string(out), want) {
				t.Errorf("no line %q in\n%s", want, out)
			}
		})
	}
}

func TestBroken(t *testing.T) {
	t.Parallel()
	wrong := os.Getenv(variable)
	if wrong == "" {
		t.Skip("run by TestSuiteNoticesWhatIsWrong")
	}
	drivertest.RunVirtual(t, func(*testing.T) drivertest.Harness {
		cloud := &memory.Cloud{Hold: time.Second, Window: 25 * time.Second}
		if wrong == "believes every read" {
			cloud.Lag = time.Second
		}
		p := cloud.Provider()
		p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			if wrong == "forgets the mark" {
				a.ClusterUID = ""
			}
			d, err := cloud.Open(ctx, a)
			b := &broken{d, cloud, wrong, a.ClusterUID}
			if wrong == "forgets without tokens" {
				return untokened{b}, err
			}
			return b, err
		}
		return drivertest.Harness{
			Provider: p,
			Account:  provider.Account{Kind: memory.Kind},
			Lag:      cloud.Lag,
			Spec:     json.RawMessage(`{"type": "small"}`),
			Invalid:  []drivertest.Bad{{Spec: json.RawMessage(`{"type": "huge"}`), Names: []string{"huge"}}},
			Exhaust: func(exhausted bool) {
				cloud.SetStock("small", -1)
				if exhausted {
					cloud.SetStock("small", 0)
				}
			},
			Writes: func() int { return len(cloud.History()) },
			Foreign: func(clusterID string) string {
				return "memory:///" + cloud.Add(provider.Account{Kind: memory.Kind}.Key(), clusterID, provider.Instance{})
			},
		}
	})
}

func (b *broken) Resolve(ctx context.Context, spec json.RawMessage) (json.RawMessage, error) {
	if b.wrong == "writes while it resolves" {
		b.cloud.Add("", "", provider.Instance{})
	}
	resolved, err := b.Driver.Resolve(ctx, spec)
	if b.wrong == "accepts any spec" {
		return spec, nil
	}
	return resolved, err
}

var made atomic.Int64

func (b *broken) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	switch b.wrong {
	case "ignores tokens":
		r.Token = time.Unix(made.Add(1), 0).String()
	case "races":
		if found, _ := b.Driver.Find(ctx, r); len(found) == 1 && found[0].Token[:len(r.Token)] == r.Token {
			return found[0], nil
		}
		time.Sleep(time.Second)
		r.Token += time.Unix(made.Add(1), 0).String()
	case "loses the tag":
		r.UID = ""
	case "calls all exhausted":
		return provider.Instance{}, provider.Errorf(provider.Exhausted, "nothing is left")
	case "ignores its context":
		ctx = context.WithoutCancel(ctx)
	}
	i, err := b.Driver.Create(ctx, r, resolved)
	if b.wrong == "makes it again" && err != nil {
		r.Token += "again"
		i, err = b.Driver.Create(ctx, r, resolved)
	}
	if b.wrong == "calls exhausted invalid" && provider.CodeOf(err) == provider.Exhausted {
		return i, provider.Errorf(provider.Invalid, "%w", errors.Unwrap(err))
	}
	return i, err
}

func (b *broken) Find(ctx context.Context, r provider.Ref) ([]provider.Instance, error) {
	found, err := b.Driver.Find(ctx, r)
	switch {
	case b.wrong == "finds by name" && r.Name != "":
		all, err := b.Driver.List(ctx)
		return slices.DeleteFunc(all, func(i provider.Instance) bool { return i.Name != r.Name && i.UID != r.UID }), err
	case b.wrong == "finds by tag only" && r.UID == "":
		return nil, err
	case b.wrong == "finds an error for nobody" && err == nil && len(found) == 0:
		return nil, provider.Errorf(provider.NotFound, "nobody")
	case b.wrong == "forgets the codes" && err != nil:
		return nil, context.Canceled
	}
	for i := range found {
		switch b.wrong {
		case "hides the token":
			found[i].Token = ""
		case "tells no addresses":
			found[i].Addresses = nil
		}
	}
	return found, err
}

func (b *broken) List(ctx context.Context) ([]provider.Instance, error) {
	all, err := b.Driver.List(ctx)
	switch {
	case b.wrong == "lists every cluster" && err == nil:
		return b.cloud.Instances(), nil
	case b.wrong == "hides others' marks":
		return slices.DeleteFunc(all, func(i provider.Instance) bool { return i.ClusterUID != b.mark }), err
	case b.wrong == "lists one" && len(all) > 1:
		return all[:1], err
	case b.wrong == "hides what is nobody's":
		return slices.DeleteFunc(all, func(i provider.Instance) bool { return i.UID == "" }), err
	}
	return all, err
}

func (b *broken) Delete(ctx context.Context, r provider.Ref) error {
	all, _ := b.Driver.List(ctx)
	named := slices.IndexFunc(all, func(i provider.Instance) bool { return i.ID == r.ID })
	switch {
	case b.wrong == "deletes nothing" && named >= 0:
		return nil
	case b.wrong == "deletes by tag always" && named >= 0:
		r.UID = all[named].UID
	case b.wrong == "deletes any id" && named >= 0, b.wrong == "deletes the recorded only" && r.ID != "":
		r.UID = ""
	case b.wrong == "forgets the attempt":
		r.Attempt = false
	case b.wrong == "believes every read":
		r.Began = time.Time{}
	}
	err := b.Driver.Delete(ctx, r)
	if b.wrong == "never knew" && provider.CodeOf(err) == provider.NotFound && r.ID == "unknown" {
		return nil
	}
	return err
}

func (b *broken) InstanceTypes(ctx context.Context) ([]provider.InstanceType, error) {
	all, err := b.Driver.InstanceTypes(ctx)
	if b.wrong == "has unsorted types" {
		slices.Reverse(all)
	}
	return all, err
}

func (b *broken) Horizon() time.Duration {
	switch b.wrong {
	case "forgets a create":
		return 23 * time.Second
	case "forgets without tokens":
		return 83 * time.Second
	}
	return b.Driver.Horizon()
}

// untokened is a broken driver without tokens.
type untokened struct{ *broken }

// Untokened marks it.
func (untokened) Untokened() {}

func (b *broken) Tags(spec json.RawMessage) (map[string]string, error) {
	tags, err := b.updater().Tags(spec)
	return tags, err
}

func (b *broken) Update(ctx context.Context, r provider.Ref, tags map[string]string) error {
	switch b.wrong {
	case "drops tags":
		tags = nil
	case "tags any id":
		r.UID = ""
	}
	return b.updater().Update(ctx, r, tags)
}

func (b *broken) updater() provider.Updater {
	u, _ := b.Driver.(provider.Updater)
	return u
}

func (b *broken) PowerCycle(ctx context.Context, r provider.Ref) error {
	if b.wrong == "cycles any id" {
		r.UID = ""
	}
	cycler, _ := b.Driver.(provider.PowerCycler)
	err := cycler.PowerCycle(ctx, r)
	switch {
	case b.wrong == "cycles nobody" && provider.CodeOf(err) == provider.NotFound:
		return nil
	case b.wrong == "cycles without its codes" && ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

func (b *broken) PowerOff(ctx context.Context, r provider.Ref) error {
	switch b.wrong {
	case "holds nothing off":
		return nil
	case "switches any id":
		r.UID = ""
	}
	return b.power().PowerOff(ctx, r)
}

func (b *broken) PowerOn(ctx context.Context, r provider.Ref) error {
	if b.wrong == "lets nothing go" {
		return nil
	}
	return b.power().PowerOn(ctx, r)
}

func (b *broken) power() provider.PowerSwitch {
	p, _ := b.Driver.(provider.PowerSwitch)
	return p
}

// Identity is the account's, which the memory driver does not tell.
func (b *broken) Identity(context.Context) (string, error) {
	if b.wrong == "tells accounts at random" {
		return time.Unix(made.Add(1), 0).String(), nil
	}
	return "here", nil
}

// Ended tells nothing: the memory driver forgets at once.
func (b *broken) Ended(ctx context.Context, _ provider.Ref) (string, error) {
	if b.wrong == "ends what runs" {
		return "it ended", nil
	}
	return "", provider.Coded(ctx.Err())
}
