// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// label is a function that wants every Node to carry a label.
func label(decide func(snapshot.Snapshot) plan.Plan) function.Function {
	return function.Function{
		Name: "label",
		Reads: func(snapshot.Snapshot) snapshot.Scope {
			return snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Node")}}
		},
		Decide: decide,
	}
}

func wantLabel(s snapshot.Snapshot) plan.Plan {
	var p plan.Plan
	for _, n := range s.Nodes {
		if n.Labels["wanted"] == "" {
			next := n.DeepCopy()
			metav1.SetMetaDataLabel(&next.ObjectMeta, "wanted", "yes")
			p.Add(plan.Sequence{
				Do:    []plan.Action{plan.Update{Old: n, New: next, Why: "wanted"}},
				Notes: []plan.Note{plan.Normal(n, "Labeled", "now it has it")},
			})
		}
	}
	return p
}

func world(t *testing.T, nodes int) *memory.Server {
	t.Helper()
	api := memory.New(func() time.Time { return start })
	fill(t, api, nodes)
	return api
}

func fill(t *testing.T, api *memory.Server, nodes int) {
	t.Helper()
	for i := range nodes {
		if err := api.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}); err != nil {
			t.Fatal(err)
		}
	}
}

func testRunner(f function.Function, c cluster.Cluster) *Runner {
	return &Runner{Function: f, Cluster: c, Log: slog.New(slog.DiscardHandler)}
}

func TestHandleLooksAgainUntilQuiet(t *testing.T) {
	t.Parallel()
	api := world(t, 3)
	r := testRunner(label(wantLabel), api.As("label"))
	p, err := r.Handle(t.Context(), snapshot.Request{})
	if err != nil || len(p.Do) != 3 {
		t.Fatalf("%v: planned\n%v", err, p)
	}
	before := len(api.Writes())
	if p, err = r.Handle(t.Context(), snapshot.Request{}); err != nil || !p.Quiet() || len(api.Writes()) != before {
		t.Errorf("%v: not quiet:\n%v", err, p)
	}
}

// A scan knows when the one before it read that came to its end; nothing else does.
func TestScanKnowsOfTheOneBefore(t *testing.T) {
	t.Parallel()
	now := start
	api := memory.New(func() time.Time { return now })
	fill(t, api, 1)
	var before time.Time
	f := label(wantLabel)
	decide := f.Decide
	f.Decide = func(s snapshot.Snapshot) plan.Plan {
		before = s.Before
		return decide(s)
	}
	r := testRunner(f, api.As("label"))
	for _, tt := range []struct {
		request snapshot.Request
		after   time.Duration
		want    time.Time
	}{
		{snapshot.Request{Kind: "Node", Name: "n0"}, 0, time.Time{}},
		{snapshot.Request{}, time.Minute, time.Time{}},
		{snapshot.Request{Kind: "Node", Name: "n0"}, time.Hour, time.Time{}},
		{snapshot.Request{}, 2 * time.Hour, start.Add(time.Minute)},
		{snapshot.Request{}, 3 * time.Hour, start.Add(2 * time.Hour)},
	} {
		now = start.Add(tt.after)
		if _, err := r.Handle(t.Context(), tt.request); err != nil || !before.Equal(tt.want) {
			t.Errorf("after %v: the scan before was %v, want %v (%v)", tt.after, before, tt.want, err)
		}
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	api := world(t, 1)
	r := testRunner(label(wantLabel), api.As("label"))
	r.DryRun = true
	before := len(api.Writes())
	if p, err := r.Handle(t.Context(), snapshot.Request{}); err != nil || len(p.Do) != 1 {
		t.Errorf("%v: %v", err, p)
	}
	if got := len(api.Writes()); got != before || len(api.Events()) != 0 {
		t.Errorf("%d writes, %d events", got-before, len(api.Events()))
	}
}

// Somebody else is faster: the write conflicts, and the decision is made anew on what he wrote.
func TestConflictIsANewDecision(t *testing.T) {
	t.Parallel()
	api := world(t, 1)
	rounds := 0
	f := label(func(s snapshot.Snapshot) plan.Plan {
		if rounds++; rounds == 1 {
			err := memory.Patch(api, "", "n0", func(n *corev1.Node) { metav1.SetMetaDataLabel(&n.ObjectMeta, "wanted", "theirs") })
			if err != nil {
				t.Error(err)
			}
		}
		return wantLabel(s)
	})
	if _, err := testRunner(f, api.As("label")).Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	if n := memory.Get[*corev1.Node](api, "", "n0"); n.Labels["wanted"] != "theirs" {
		t.Errorf("overwritten: %v", n.Labels)
	}
	if len(api.Events()) != 0 {
		t.Error("told about a write that did not happen")
	}
}

// A function that wants for ever what it was given is a fault, not a loop.
func TestHandleEndsWhatIsNeverQuiet(t *testing.T) {
	t.Parallel()
	n := 0
	f := label(func(s snapshot.Snapshot) plan.Plan {
		var p plan.Plan
		next := s.Nodes[0].DeepCopy()
		n++
		metav1.SetMetaDataLabel(&next.ObjectMeta, "n", fmt.Sprint(n))
		p.Then(plan.Update{Old: s.Nodes[0], New: next})
		return p
	})
	_, err := testRunner(f, world(t, 1).As("label")).Handle(t.Context(), snapshot.Request{})
	if err == nil || events.Status(err) != http.StatusServiceUnavailable || n != maxRounds {
		t.Errorf("after %d rounds: %v", n, err)
	}
}

type broken struct{ cluster.Cluster }

func (broken) Apply(context.Context, plan.Action) error { return errors.New("etcd is gone") }

// An answer that proves nothing ends the invocation with a retry; the other sequences were tried all the same.
func TestUnclearAnswerIsRetried(t *testing.T) {
	t.Parallel()
	_, err := testRunner(label(wantLabel), broken{world(t, 2).As("label")}).Handle(t.Context(), snapshot.Request{})
	if retry, ok := errors.AsType[*events.RetryError](err); !ok || retry.Busy || strings.Count(err.Error(), "etcd is gone") != 2 {
		t.Errorf("got %v", err)
	}
}

func TestClockThatIsOffDecidesNothing(t *testing.T) {
	t.Parallel()
	r := testRunner(label(wantLabel), world(t, 1).As("label"))
	r.Clock = func() time.Time { return start.Add(31 * time.Second) }
	if p, err := r.Handle(t.Context(), snapshot.Request{}); err == nil || !p.Quiet() {
		t.Errorf("%v: %v", err, p)
	}
}

func TestNotesAreToldOnce(t *testing.T) {
	t.Parallel()
	api := world(t, 1)
	r := testRunner(label(func(s snapshot.Snapshot) plan.Plan {
		return plan.Plan{Notes: []plan.Note{plan.Warning(s.Nodes[0], "Odd", "it is odd")}}
	}), api.As("label"))
	for range 3 {
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := api.Events(); len(got) != 1 || got[0].Count > 1 || got[0].Source.Component != "label" {
		t.Errorf("got %+v", got)
	}
}

func post(s *Server, eventType string) *httptest.ResponseRecorder {
	return postAbout(s, eventType, snapshot.Request{})
}

// postAbout delivers an event about an object.
func postAbout(s *Server, eventType string, of snapshot.Request) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/", nil)
	for k, v := range map[string]string{"Specversion": "1.0", "Id": "7", "Source": "x", "Type": eventType,
		"Apiversion": of.APIVersion, "Kind": of.Kind, "Namespace": of.Namespace, "Name": of.Name} {
		if v != "" {
			req.Header.Set("Ce-"+k, v)
		}
	}
	w := httptest.NewRecorder()
	s.Handle(w, req)
	return w
}

func TestServerRepliesWithItsDecision(t *testing.T) {
	t.Parallel()
	s := NewServer(testRunner(label(wantLabel), world(t, 1).As("label")), nil)
	w := post(s, events.TypePing)
	var d events.Decision
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || w.Code != http.StatusOK || d.Function != "label" {
		t.Fatalf("%v: %d %s", err, w.Code, w.Body)
	}
	if w.Header().Get("Ce-Type") != "machine.label.decided" || !strings.Contains(d.Plan, "update node/n0 (wanted)") {
		t.Errorf("%v %q", w.Header(), d.Plan)
	}
	if w = post(s, events.TypePing); w.Code != http.StatusAccepted || w.Body.Len() != 0 {
		t.Errorf("quiet: %d %s", w.Code, w.Body)
	}
}

func TestServerSurvivesAPanic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := testRunner(label(func(snapshot.Snapshot) plan.Plan { panic("poison") }), world(t, 1).As("label"))
	r.Log = slog.New(slog.NewJSONHandler(&log, nil))
	w := post(NewServer(r, nil), events.TypePing)
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "poison") || !strings.Contains(log.String(), "poison") {
		t.Errorf("%d %s, log %s", w.Code, w.Body, &log)
	}
}

func TestServerRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	s := NewServer(testRunner(label(wantLabel), world(t, 1).As("label")), nil)
	if w := post(s, "com.example.other"); w.Code != http.StatusBadRequest {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	s := NewServer(testRunner(label(wantLabel), world(t, 1).As("label")), nil)
	if ok, err := s.Ready(t.Context()); !ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}

func TestConfigFrom(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, key, value, want string }{
		{"namespaces", "MACHINE_NAMESPACES", "a,b", ""},
		{"an empty namespace", "MACHINE_NAMESPACES", "a,", `MACHINE_NAMESPACES="a,": "" names no namespace`},
		{"a space", "MACHINE_NAMESPACES", "a, b", `MACHINE_NAMESPACES="a, b": " b" names no namespace`},
		{"senders", "OIDC_SUBJECTS", "a*,b", ""},
		{"no pattern", "OIDC_SUBJECTS", "a,[", `OIDC_SUBJECTS="a,[": "[" is no pattern`},
		{"an empty pattern", "OIDC_SUBJECTS", "a,", `OIDC_SUBJECTS="a,": with OIDC_AUDIENCE it must name who may send`},
		{"a space before a pattern", "OIDC_SUBJECTS", "a, b", `OIDC_SUBJECTS="a, b": " b" is no pattern`},
		{"dry run", "DRY_RUN", "1", ""},
		{"no bool", "DRY_RUN", "perhaps", `DRY_RUN="perhaps": neither true nor false`},
		{"strict", "STRICT_TLS", "true", ""},
		{"no bool either", "STRICT_TLS", "very", `STRICT_TLS="very": neither true nor false`},
		{"no level", "LOG_LEVEL", "loud", `LOG_LEVEL="loud": none of DEBUG, INFO, WARN, ERROR`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{tt.key: tt.value}
			if tt.key == "OIDC_SUBJECTS" {
				env["OIDC_AUDIENCE"] = "functions"
			}
			c, err := ConfigFrom(func(key string) string { return env[key] })
			if got := fmt.Sprint(err); err != nil && got != tt.want || err == nil && tt.want != "" {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err == nil && (c.DryRun != (tt.key == "DRY_RUN") || c.StrictTLS != (tt.key == "STRICT_TLS")) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// RECORD is a switch or a folder, and a folder that is not there is made.
func TestDecisionsAreRecorded(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"": "", "0": "", "1": filepath.Join(os.TempDir(), "recordings"), "true": filepath.Join(os.TempDir(), "recordings"), "/var/x": "/var/x"} {
		c, err := ConfigFrom(func(key string) string { return map[string]string{"RECORD": value}[key] })
		if err != nil || c.Record != want {
			t.Errorf("RECORD=%q is the folder %q, want %q (%v)", value, c.Record, want, err)
		}
	}
	r := testRunner(label(wantLabel), world(t, 1).As("label"))
	r.Record = filepath.Join(t.TempDir(), "made", "for it")
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(r.Record, "label-*.txtar"))
	if err != nil || len(files) != 1 {
		t.Errorf("recorded %v, error %v", files, err)
	}
}
