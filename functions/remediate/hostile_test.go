// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// Whatever stands on a check, in its record, its annotations or its spec: nothing is deleted unless all of it is understood,
// what is written can be read again, and no number is below nothing.
func FuzzCheck(f *testing.F) {
	s, _, err := scenario.Load("testdata/deletes-what-is-committed.txtar")
	if err != nil {
		f.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil || len(seen.HealthChecks) != 1 || !deletes(Decide(seen)) {
		f.Fatalf("%d checks, error %v", len(seen.HealthChecks), err)
	}
	usual := seen.HealthChecks[0]
	record := usual.Annotations[machine.AnnotationInFlight]
	f.Add(record, "", "", "", "2", int64(5*time.Minute), "role", "Exists", "")
	f.Add(`{"schema":2}`, "50%", "replace", "5m", "40%", int64(0), "", "In", "worker")
	f.Add(`{"schema":1,"seen":{"machine-a":{"what":"","at":"9999-12-31T23:59:59-12:00"}}}`, "-1", "power-cycle=10m,replace", "-5m", "-1", int64(-1), "a b", "NotIn", "x")
	f.Add(`{"schema":1,"inFlight":[{"machine":"worker-a","uid":"machine-a","at":"2026-01-01T09:59:10Z","step":9223372036854775807}]}`, "1%", "template", "0s", "101%", int64(1), "", "DoesNotExist", "")
	f.Add(`{"schema":1,"failing":{"set-1":{"count":-9223372036854775808,"at":"2026-01-01T09:00:00Z"}},"storm":{"since":"2026-01-01T09:00:00Z","over":null}}`,
		"9223372036854775807%", "replace=1m", "2562047h", "2147483647", int64(time.Hour), "a/b/c", "Gt", "1")
	f.Fuzz(func(t *testing.T, record, inFlight, steps, cooldown, most string, timeout int64, key, operator, value string) {
		h := usual.DeepCopy()
		for name, text := range map[string]string{
			machine.AnnotationInFlight: record, machine.AnnotationMaxInFlight: inFlight, machine.AnnotationSteps: steps,
			machine.AnnotationStormCooldown: cooldown, machine.AnnotationHealthyDelay: cooldown,
		} {
			delete(h.Annotations, name)
			if text != "" {
				h.Annotations[name] = text
			}
		}
		h.Spec.MaxUnhealthy = new(intstr.Parse(most))
		h.Spec.NodeStartupTimeout = &metav1.Duration{Duration: time.Duration(timeout)}
		h.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{{Type: "Ready", Status: "False", Timeout: metav1.Duration{Duration: time.Duration(timeout)}}}
		if key+operator+value != "" {
			h.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOperator(operator)}}
			if value != "" {
				h.Spec.Selector.MatchExpressions[0].Values = []string{value}
			}
		}
		world := seen.Clone()
		world.HealthChecks = []*machine.MachineHealthCheck{h}
		c, err := newCheck(world, h, nil, networkOf(world))
		p := Decide(world)
		switch {
		case err != nil && deletes(p):
			t.Errorf("deletes, though %v", err)
		case deletes(p) && !c.record.has("machine-a"):
			t.Errorf("deletes what is not in flight: %s", record)
		case err == nil && (c.sum.most < 0 || c.policy.cooldown < 0 || c.policy.healthyDelay < 0 || len(c.policy.steps) == 0):
			t.Errorf("%+v %+v", c.sum, c.policy)
		}
		for _, a := range p.Actions() {
			if u, ok := a.(plan.Update); ok {
				if _, err := parseRecord(u.New.GetAnnotations()[machine.AnnotationInFlight]); err != nil && u.New.GetAnnotations()[machine.AnnotationInFlight] != record {
					t.Errorf("writes what cannot be read: %v", err)
				}
			}
		}
	})
}

// What could be read in two ways is not read at all: with the second list of those in flight, which is empty, there would be room for as
// many more as the check allows.
func TestRecordsOfChecksAreReadInOneWay(t *testing.T) {
	t.Parallel()
	const usual = `{"schema":1,"inFlight":[{"machine":"worker-a","uid":"machine-a","at":"2026-01-01T09:59:10Z"}]}`
	if r, err := parseRecord(usual); err != nil || !r.has("machine-a") {
		t.Fatalf("read %+v: %v", r, err)
	}
	for name, change := range map[string][2]string{
		"a field twice":              {`}]}`, `}],"inFlight":[]}`},
		"a field of a Machine twice": {`"uid":"machine-a"`, `"uid":"machine-a","uid":"machine-b"`},
		"a field in capitals":        {`"inFlight"`, `"INFLIGHT"`},
		"a field of nobody":          {`}]}`, `}],"x":1}`},
		"something behind it":        {`}]}`, `}]}{}`},
		"a newer schema":             {`"schema":1`, `"schema":2`},
		"no schema":                  {`"schema":1,`, ``},
		"a step before the first":    {`"at"`, `"step":-1,"at"`},
	} {
		text := strings.Replace(usual, change[0], change[1], 1)
		if r, err := parseRecord(text); err == nil {
			t.Errorf("%s: %s was read as %+v", name, text, r)
		}
	}
}

// Rules of a few lines that repeat themselves would take the memory of the function in each scan (2c).
func TestRulesThatExpandAreNotUnderstood(t *testing.T) {
	t.Parallel()
	text := "items: [{name: Ready, timeout: 5m, status: &a \"" + strings.Repeat("e", 20000) + "\"}" + strings.Repeat(",{status: *a}", 5000) + "]\n"
	if _, err := translate(&machine.LegacyHealthCheck{}, &corev1.ConfigMap{Data: map[string]string{"conditions": text}}); !errors.Is(err, provider.ErrExpands) {
		t.Error(err)
	}
}

func deletes(p plan.Plan) bool {
	for _, a := range p.Actions() {
		if _, ok := a.(plan.Delete); ok {
			return true
		}
	}
	return false
}

// A record of so many Nodes that are gone at once stays one that the API server takes: of annotations it takes 256 KiB.
func TestSightingsHaveRoom(t *testing.T) {
	t.Parallel()
	c := &check{}
	for k := range 5000 {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: fmt.Sprint("worker-", k), UID: types.UID(fmt.Sprintf("%036d", k))}}
		c.targets = append(c.targets, &target{m: m, verdict: verdict{reason: reasonNotFound, sight: reasonNotFound}})
	}
	if text := (record{Schema: recordSchema, Seen: c.sightings()}).String(); len(text) > 1<<17 {
		t.Errorf("%d bytes", len(text))
	}
}

// A version of before reads what is written today, or each check with a failure on record would be idle after the way back.
func TestFormerVersionsReadTheRecord(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	r, err := parseRecord(`{"schema":1,"inFlight":[{"machine":"worker-a","uid":"machine-a","set":"worker","at":"2026-01-01T09:59:10Z"}],
		"seen":{"machine-b":{"what":"NodeNotFound","at":"2026-01-01T09:59:10Z"},"machineset/set-0":{"what":"0badc0de"}},
		"failing":{"set-1":{"count":3,"at":"2026-01-01T09:47:00Z","of":"925b25e9"}},"storm":{"since":"2026-01-01T09:47:00Z"}}`)
	if err != nil {
		t.Fatal(err)
	}
	type sighting struct {
		What string      `json:"what"`
		At   metav1.Time `json:"at"`
	}
	var former struct {
		Schema   int                 `json:"schema"`
		InFlight []remediation       `json:"inFlight"`
		Seen     map[string]sighting `json:"seen"`
		Failing  map[string]struct {
			Count int         `json:"count"`
			At    metav1.Time `json:"at"`
		} `json:"failing"`
		Storm *storm `json:"storm"`
	}
	text := r.bounded(now).String()
	if err := machine.ReadRecord(text, &former); err != nil || former.Failing["set-1"].Count != 3 || former.Seen["machineset/set-1"].What != "925b25e9" {
		t.Errorf("%s: %v", text, err)
	}
}
