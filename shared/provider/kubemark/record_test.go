// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func record(t *testing.T, spec string) Record {
	t.Helper()
	s, err := parse(json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	return Record{
		ID: identity("ours", "t"), Cluster: "ours", UID: "u", Token: "t", Name: "worker", Spec: s.filled(), Address: "10.0.0.1",
		Admitted: true, Created: begin,
	}
}

func TestLife(t *testing.T) {
	t.Parallel()
	const gone = provider.State("gone")
	type moment struct {
		at      time.Duration
		state   provider.State
		kubelet Kubelet
	}
	tests := []struct {
		name   string
		spec   string
		change func(*Record)
		life   []moment
	}{
		{"boots", `{"flavor": "2c8g30d"}`, nil, []moment{
			{0, provider.StatePending, KubeletNone}, {3 * time.Second, provider.StateRunning, KubeletReady},
		}},
		{"boots at once", `{"flavor": "2c8g30d", "bootSeconds": 0}`, nil, []moment{{0, provider.StateRunning, KubeletReady}}},
		{"never boots", `{"flavor": "2c8g30d", "neverBoot": true}`, nil, []moment{{time.Hour, provider.StateRunning, KubeletNone}}},
		{"turns unhealthy", `{"flavor": "2c8g30d", "turnUnhealthyAfter": true, "healthyDuration": "10s"}`, nil, []moment{
			{12 * time.Second, provider.StateRunning, KubeletReady}, {13 * time.Second, provider.StateRunning, KubeletUnready},
			{time.Hour, provider.StateRunning, KubeletUnready},
		}},
		{
			"turns unhealthy in turns",
			`{"flavor": "2c8g30d", "turnUnhealthyPeriodically": true, "healthyDuration": "10s", "unhealthyDuration": "5s"}`, nil,
			[]moment{
				{12 * time.Second, provider.StateRunning, KubeletReady}, {13 * time.Second, provider.StateRunning, KubeletUnready},
				{18 * time.Second, provider.StateRunning, KubeletReady}, {28 * time.Second, provider.StateRunning, KubeletUnready},
			},
		},
		{"vanishes", `{"flavor": "2c8g30d", "vanishAfter": "10s"}`, nil, []moment{
			{9 * time.Second, provider.StateRunning, KubeletReady}, {10 * time.Second, gone, KubeletStopped},
		}},
		{"is deleted", `{"flavor": "2c8g30d", "deletionTimeout": "4s"}`, func(r *Record) { r.Deleted = begin.Add(time.Minute) }, []moment{
			{time.Minute, provider.StateDeleting, KubeletStopped}, {64 * time.Second, gone, KubeletStopped},
		}},
		{"is known to be gone", `{"flavor": "2c8g30d"}`, func(r *Record) { r.Gone = begin }, []moment{{time.Hour, gone, KubeletStopped}}},
		{"is lost", `{"flavor": "2c8g30d"}`, fault(FaultVanished), []moment{{time.Hour, gone, KubeletStopped}}},
		{"is powered off", `{"flavor": "2c8g30d"}`, fault(FaultOff), []moment{{time.Hour, provider.StateStopped, KubeletStopped}}},
		{"has a dead kubelet", `{"flavor": "2c8g30d"}`, fault(FaultStopped), []moment{{time.Hour, provider.StateRunning, KubeletStopped}}},
		{"has an unready kubelet", `{"flavor": "2c8g30d"}`, fault(FaultUnready), []moment{{time.Hour, provider.StateRunning, KubeletUnready}}},
		{"boots again", `{"flavor": "2c8g30d", "turnUnhealthyAfter": true, "healthyDuration": "10s"}`, func(r *Record) {
			r.Cycled, r.Registered = begin.Add(time.Minute), true
		}, []moment{
			{time.Minute, provider.StateRunning, KubeletStopped}, {63 * time.Second, provider.StateRunning, KubeletReady},
			{73 * time.Second, provider.StateRunning, KubeletUnready},
		}},
		{"fails", `{"flavor": "2c8g30d"}`, fault(FaultError), []moment{{0, provider.StateFailed, KubeletStopped}}},
		{"is a claim", `{"flavor": "2c8g30d"}`, func(r *Record) { r.Admitted = false }, []moment{{time.Hour, provider.StateRunning, KubeletNone}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := record(t, tt.spec)
			if tt.change != nil {
				tt.change(&r)
			}
			for _, want := range tt.life {
				got := moment{want.at, gone, r.Kubelet(begin.Add(want.at))}
				if !r.IsGone(begin.Add(want.at)) {
					got.state, _ = r.state(begin.Add(want.at))
				}
				if got != want {
					t.Errorf("after %v: %+v, want %+v", want.at, got, want)
				}
			}
		})
	}
}

func fault(f Fault) func(*Record) { return func(r *Record) { r.Fault = f } }

func TestRecordIsStoredWhole(t *testing.T) {
	t.Parallel()
	want := record(t, `{"numCores": "1500m", "memoryCapacity": "3Gi", "gpus": 1, "labels": {"a": "b"}, "vanishAfter": "1h"}`)
	want.Deleted, want.Gone, want.Fault, want.Registered = begin.Add(1), begin.Add(2), FaultOff, true
	o, err := want.object()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Record{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnreadableRecordIsNamed(t *testing.T) {
	t.Parallel()
	o, err := record(t, `{"flavor": "2c8g30d"}`).object()
	if err != nil {
		t.Fatal(err)
	}
	for key, text := range map[string]string{"fault": "tired", "created": "today", "admitted": "perhaps", "spec": "{"} {
		bad := o.clone()
		bad.Data[key] = text
		store := new(Memory)
		for _, o := range []Object{bad, {Name: "i-2", Labels: o.Labels, Data: o.Data}} {
			if _, err := store.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if records, err := Records(t.Context(), store, true); err == nil || len(records) != 1 {
			t.Errorf("%s: %q: %d records, error %v, want the other one and an error", key, text, len(records), err)
		}
		if _, err := open(t, store, "ours").List(t.Context()); provider.CodeOf(err) != provider.Unknown {
			t.Errorf("%s: %q: List = %v, want Unknown: a partial list is no list", key, text, err)
		}
	}
}

func TestSpecStatesItsCapacity(t *testing.T) {
	t.Parallel()
	zones := []string{"nova"}
	tests := []struct {
		spec string
		want provider.InstanceType
	}{
		{`{"flavor": "4c12g30d"}`, provider.InstanceType{Name: "4c12g30d", Arch: "amd64", MilliCPU: 4000, Memory: 12 << 30, Disk: 30 << 30, Zones: zones}},
		{
			`{"flavor": "4c12g30d", "memoryCapacity": "1Gi", "gpus": 2, "arch": "arm64", "zone": "b"}`,
			provider.InstanceType{
				Name: "4c12g30d", Arch: "arm64", MilliCPU: 4000, Memory: 1 << 30, Disk: 30 << 30, GPU: 2, GPUType: "nvidia.com/gpu", Zones: []string{"b"},
			},
		},
		{`{"numCores": 2, "memoryCapacity": "4Gi"}`, provider.InstanceType{Name: "custom", Arch: "amd64", MilliCPU: 2000, Memory: 4 << 30, Zones: zones}},
	}
	for _, tt := range tests {
		got, err := Provider(nil).InstanceType(json.RawMessage(tt.spec))
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.spec, err, diff)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	create := func(d provider.Driver) error {
		_, err := d.Create(t.Context(), ref(1), frozen)
		return err
	}
	tests := []struct {
		name string
		data map[string]string
		call func(provider.Driver) error
		code provider.Code
		made int
	}{
		{"refused before anything happens", map[string]string{"errors": "- {call: Create, code: Denied, message: no}"}, create, provider.Denied, 0},
		{"lost after it happened", map[string]string{"errors": "- {call: Create, after: true, code: Unknown, message: 503}"}, create, provider.Unknown, 1},
		{"another machine's", map[string]string{"errors": "- {call: Create, name: worker-2, code: Denied, message: no}"}, create, -1, 1},
		{"no stock in any zone", map[string]string{"stock": "4c12g30d: 0"}, create, provider.Exhausted, 0},
		{"stock elsewhere", map[string]string{"stock": "4c12g30d/moon: 0"}, create, -1, 1},
		{"unknown setting", map[string]string{"weather": "bad"}, create, provider.Unknown, 0},
		{"unknown code", map[string]string{"errors": "- {call: Create, code: Tired}"}, create, provider.Unknown, 0},
		{"a list that fails", map[string]string{"errors": "- {call: List, code: Throttled, message: slowly, retryAfter: 5s}"}, func(d provider.Driver) error {
			_, err := d.List(t.Context())
			return err
		}, provider.Throttled, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := new(Memory)
			set(t, store, tt.data)
			err := tt.call(open(t, store, "ours"))
			if code := provider.CodeOf(err); err == nil != (tt.code < 0) || err != nil && code != tt.code {
				t.Errorf("error %v with code %v, want %v", err, code, tt.code)
			}
			if history, err := History(t.Context(), store); err != nil || len(history) != tt.made {
				t.Errorf("%d instances exist, %v, want %d", len(history), err, tt.made)
			}
		})
	}
}
