// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// SPEC E2, E18: an instance that no host had room for goes, and the same attempt asks again later with the ports that it has,
// as after every other shortage. Nothing of those that failed is left.
func TestNoValidHostIsRetried(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"ports alone": `"trunk": true`, "everything": everything} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.noRoom = 3
				l := newLife(t, f, more)
				refused := 0
				var in provider.Instance
				for in.ID == "" {
					var err error
					if in, err = l.Create(t.Context(), l.ref, l.resolved); len(in.Progress) > 0 {
						l.ref.Progress = in.Progress
					}
					if err != nil {
						refused++
						if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "No valid host was found") || !strings.Contains(err.Error(), "4c12g30d") || refused > 3 {
							t.Fatalf("refusal %d = %v (%v)", refused, err, provider.CodeOf(err))
						}
					}
					time.Sleep(5 * time.Second)
				}
				l.up(t)
				if refused != 3 || f.count("servers") != 1 || f.count("trunks") != f.count("ports") || l.attempt != 1 {
					t.Errorf("%d refusals, %d instances, %d ports, %d trunks, attempt %d", refused, f.count("servers"), f.count("ports"), f.count("trunks"), l.attempt)
				}
				l.down(t)
				wantNothing(t, f, name)
			})
		})
	}
}

// RELIABILITY 2b.3: what has no host yet is no instance to record. After a minute it is, whatever comes of it.
func TestInstanceWithoutAHostIsIncomplete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server{ID: "1", Status: "BUILD", Task: "scheduling", Created: time.Now()}
		for _, want := range []provider.State{provider.StateIncomplete, provider.StatePending} {
			if got := s.state(); got != want {
				t.Errorf("after %v: %s, want %s", time.Since(s.Created), got, want)
			}
			time.Sleep(placeWithin)
		}
		s.Task, s.Created = "", time.Now()
		if got := s.state(); got != provider.StatePending {
			t.Errorf("with a host: %s", got)
		}
	})
}

// That no host has room for an instance Nova tells on the instance, long after it accepted it: it is a shortage, other faults
// are not (E18).
func TestNoValidHostIsAShortage(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]provider.Code{
		"No valid host was found. There are not enough hosts available.":                                provider.Exhausted,
		"Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures": provider.Exhausted,
		"Image 7f1a is unacceptable: Converted to raw, but format is now qcow2":                         provider.Unknown,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				l := newLife(t, f, "")
				d, ok := l.Driver.(*driver)
				if !ok {
					t.Fatalf("%T", l.Driver)
				}
				tags := []any{}
				for _, text := range d.tags.of(l.ref.UID, l.ref.Token) {
					tags = append(tags, text)
				}
				f.add("servers", map[string]any{"name": l.ref.Name, "status": "ERROR", "tags": tags, "flavor": map[string]any{}, "fault": map[string]any{"message": fault}})
				all, err := l.List(t.Context())
				if err != nil || len(all) != 1 || all[0].State != provider.StateFailed || all[0].Message != fault || all[0].Code != want {
					t.Errorf("List = %+v, %v; want the code %v", all, err, want)
				}
			})
		})
	}
}
