// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// A request that the cloud has answered with no makes nothing: that it was sent a moment ago leaves nothing unclear, and it is
// sent again, with the ports that are there (G6).
func TestRefusalLeavesNothingUnclear(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ more, method, path, kind string }{
		"instance":     {"", http.MethodPost, "/servers", "forbidden"},
		"volume":       {everything, http.MethodPost, "/volumes", "overLimit"},
		"tags of port": {"", http.MethodPut, "/tags", "NeutronError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				l := newLife(t, f, c.more)
				asked := 0
				f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
					if after || r.Method != c.method || !strings.HasSuffix(r.URL.Path, c.path) {
						return nil, nil
					}
					asked++
					return reply(refuse(http.StatusForbidden, c.kind, "Quota exceeded")), nil
				}
				for range 12 {
					l.patientStep(t)
					time.Sleep(20 * time.Second)
				}
				for _, err := range l.errs {
					if !provider.CodeOf(err).Definite() {
						t.Errorf("said to be unclear: %v", err)
					}
				}
				if asked < 3 {
					t.Errorf("asked for %d times in four minutes", asked)
				}
				f.wire = nil
				for f.count("servers") == 0 && len(l.errs) < 100 {
					l.patientStep(t)
					time.Sleep(20 * time.Second)
				}
				wantOneRunning(t, f)
				l.down(t)
				wantNothing(t, f, name)
			})
		})
	}
}

// patientStep is step for an attempt that keeps what it has made.
func (l *life) patientStep(t *testing.T) {
	t.Helper()
	in, err := l.Create(t.Context(), l.ref, l.resolved)
	l.note(t, err)
	if len(in.Progress) > 0 {
		l.ref.Progress = in.Progress
	}
	if err != nil && provider.CodeOf(err).Definite() && len(l.ref.Progress) == 0 {
		l.attempt++
		l.ref.Token = machine.Token(l.ref.UID, l.attempt, "zone")
	}
}

// What came of one request is no word about another: the answer to the second was lost, and it may have worked.
func TestRefusalSaysNothingOfALaterRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		var answer func(context.Context) (*http.Response, error)
		asked := 0
		f.wire = func(ctx context.Context, r *http.Request, after bool) (*http.Response, error) {
			if after || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/servers") {
				return nil, nil
			}
			asked++
			return answer(ctx)
		}
		answer = answers(http.StatusForbidden, `{"forbidden": {"code": 403, "message": "Quota exceeded"}}`, nil)
		for asked == 0 {
			l.patientStep(t)
		}
		answer = silence // in the same second
		l.patientStep(t)
		for range 5 {
			time.Sleep(5 * time.Second)
			l.patientStep(t)
		}
		if asked != 2 {
			t.Errorf("asked for %d times", asked)
		}
		for i, err := range l.errs[1:] {
			if provider.CodeOf(err) != provider.Unknown {
				t.Errorf("error %d after the lost answer: %v", i, err)
			}
		}
	})
}

// A Machine that waited for a quota goes at once when it is deleted, and never says that an answer was lost (R-L2).
func TestMachineThatWaitsForAQuotaIsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.cloud.quota = -1
		o.password("right")
		o.scans(t, 20)
		m := memory.List[*machine.Machine](o.api)[0]
		if i, err := machine.ParseIntent(m); err != nil || i.Unresolved() || i.Code != provider.Exhausted.String() {
			t.Errorf("the intent is %+v, %v", i, err)
		}
		now := metav1.NewTime(time.Now())
		m.DeletionTimestamp = &now
		m.Status.Conditions = append(m.Status.Conditions, machine.Condition{Type: machine.ConditionDrained, Status: corev1.ConditionTrue, LastTransitionTime: now})
		if err := o.api.Put(m); err != nil {
			t.Fatal(err)
		}
		o.scans(t, 6)
		if left := memory.List[*machine.Machine](o.api); len(left) > 0 {
			t.Errorf("it is there after a minute: %+v", left[0].Status.Conditions)
		}
		for _, e := range o.api.Events() {
			if e.Reason == "FailedCreate" && !strings.Contains(e.Message, "Quota exceeded") {
				t.Errorf("Event %q", e.Message)
			}
		}
		wantNothing(t, o.cloud, "in the end")
	})
}
