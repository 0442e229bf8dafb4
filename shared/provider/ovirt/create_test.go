// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/engine"
)

// Each field of the spec comes to the engine (SPEC E43).
func TestEveryFieldArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, `"guaranteed_memory_mb": 8192, "affinity_groups_names": ["workers", "infra"], "auto_pinning_policy": "resize_and_pin", "hugepages": 1048576,
			"format": "raw", "sparse": false, "clone": true, "storage_domain_id": "`+engine.StorageDomain+`", "type": "high_performance",
			"network_interfaces": [{"vnic_profile_id": "`+engine.Profile+`"}, {"vnic_profile_id": "`+engine.OtherProfile+`"}, {"vnic_profile_id": "`+engine.Profile+`"}]`)
		var cloned string
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/api/vms") {
				cloned = r.URL.Query().Get("clone")
			}
			return next()
		})
		l.up(t)
		i := w.Instances()[0]
		want := `{"cluster":{"id":"` + engine.Cluster + `"},"comment":"…","console":{"enabled":true},"cpu":{"mode":"host_passthrough","topology":{"cores":4,"sockets":1,"threads":1}},
			"custom_properties":{"custom_property":[{"name":"hugepages","value":"1048576"}]},"description":"Machine openshift-machine-api/worker-a of cluster ocp43-abcde",
			"disk_attachments":{"disk_attachment":[{"disk":{"alias":"` + prefix(l.account.ClusterID, string(l.ref.UID)) + `1","format":"raw","id":"5a0e0007-0000-4000-9000-000000000001","sparse":false,"storage_domains":{"storage_domain":[{"id":"` + engine.StorageDomain + `"}]}}}]},
			"initialization":{"custom_script":"{\"ignition\":{\"version\":\"3.2.0\"}}","host_name":"worker-a"},"memory":17142120448,"memory_policy":{"ballooning":false,"guaranteed":8589934592},"name":"worker-a",
			"placement_policy":{"affinity":"user_migratable","hosts":{"host":[{"id":"5a0e0011-0000-4000-8000-000000000001"}]}},"soundcard_enabled":false,"template":{"id":"5a0e0003-0000-4000-8000-000000000001"},"type":"high_performance"}`
		var asked map[string]any
		must(t, json.Unmarshal([]byte(want), &asked))
		i.Fields["comment"] = "…"
		if diff := cmp.Diff(asked, i.Fields); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{engine.Profile, engine.OtherProfile, engine.Profile}, i.Profiles); diff != "" {
			t.Errorf("network interfaces (-want +got):\n%s", diff)
		}
		if cloned != "true" || !i.Pinned || !slices.Equal(i.Groups, []string{"workers", "infra"}) || !slices.Equal(i.Sizes, []int64{31 << 30}) || !slices.Equal(i.Tags, []string{"ocp43-abcde"}) {
			t.Errorf("clone=%s, made %+v", cloned, i)
		}
	})
}

// With an instance type the request has no size of its own; a desktop's disks depend on the template's, and what the spec leaves out is
// the template's.
func TestWhatTheSpecLeavesOutIsTheTemplates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, typed+`, "type": "desktop", "os_disk": {"size_gb": 16}`)
		in := l.up(t)
		i := w.Instances()[0]
		for _, name := range []string{"cpu", "memory", "memory_policy", "custom_properties", "placement_policy"} {
			if v, said := i.Fields[name]; said {
				t.Errorf("%s is %v", name, v)
			}
		}
		if in.Type != engine.InstanceType || i.Pinned || i.Groups != nil || !slices.Equal(i.Sizes, []int64{16 << 30}) {
			t.Errorf("made %+v, told %+v", i, in)
		}
	})
}

// A step begins when the one before has ended: nothing is changed of an instance whose disks are being made, or resized, and it starts last.
func TestOneStepAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.Lock = 30 * time.Second
		l := newLife(t, w, `"affinity_groups_names": ["workers"], "auto_pinning_policy": "resize_and_pin"`)
		r, before := l.ref, len(w.Calls())
		var steps []string
		for range 60 {
			in, err := l.Create(t.Context(), r, l.resolved)
			must(t, err)
			var did []string
			for _, c := range w.Calls()[before:] {
				if !strings.HasPrefix(c, "GET ") && c != "POST token" {
					did = append(did, c)
				}
			}
			before = len(w.Calls())
			if did != nil {
				steps = append(steps, strings.Join(did, "; "))
			}
			if in.State != provider.StateIncomplete {
				break
			}
			r.Progress = in.Progress
			time.Sleep(5 * time.Second)
		}
		want := []string{
			"POST /vms",
			"PUT /vms/*; PUT /vms/*/diskattachments/*",
			"DELETE /vms/*/nics/*; POST /vms/*/nics; POST /tags; POST /vms/*/tags; POST /clusters/*/affinitygroups/*/vms; POST /vms/*/autopincpuandnumanodes; POST /vms/*/start; PUT /vms/*",
		}
		if diff := cmp.Diff(want, steps); diff != "" {
			t.Errorf("changes of each call (-want +got):\n%s", diff)
		}
	})
}

// A disk that grows is waited for, also by who does not know that it was asked to.
func TestDiskThatGrowsIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		for w.count("PUT /vms/*/diskattachments/*") == 0 {
			_, err := l.Create(t.Context(), l.ref, l.resolved)
			must(t, err)
			time.Sleep(500 * time.Millisecond)
		}
		before := w.Writes()
		in, err := l.Create(t.Context(), l.ref, l.resolved) // half a second later it is locked
		if err != nil || in.State != provider.StateIncomplete || w.Writes() != before {
			t.Errorf("Create = %+v, %v after %d changes", in, err, w.Writes()-before)
		}
		l.up(t)
	})
}

// Which disks are an instance's own is noted as they are known, and nothing starts before.
func TestDisksAreNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		left := 4
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if w.count("POST /vms") > 0 && left > 0 && strings.HasSuffix(r.URL.Path, "/diskattachments") {
				left--
				return answered(http.StatusOK, "application/json", "{"), nil
			}
			return next()
		})
		for range 30 {
			in, err := l.Create(t.Context(), l.ref, l.resolved)
			if in.State == provider.StateIncomplete {
				l.ref.Progress = in.Progress
			}
			if err != nil && (w.Instances()[0].Status != "down" || w.Writes() != 1) {
				t.Errorf("after %v it is %+v", err, w.Instances()[0])
			}
			time.Sleep(time.Second)
		}
		i := w.Instances()[0]
		if m, ok := marked(i.Comment); !ok || m.ID != i.ID || !m.Launched || !slices.Equal(m.Disks, i.Disks) || left != 0 {
			t.Errorf("noted %+v on %+v", m, i)
		}
	})
}

// count returns how many calls of a kind there were.
func (w *wire) count(call string) (n int) {
	for _, c := range w.Calls() {
		if c == call {
			n++
		}
	}
	return n
}

// The engine takes back what it cannot finish: that is told, and the same attempt makes another.
func TestInstanceThatTheEngineTakesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		w.Spoil(true)
		in, err := l.Create(t.Context(), l.ref, l.resolved)
		must(t, err)
		time.Sleep(2 * time.Second)
		l.ref.Progress = in.Progress
		in, err = l.Create(t.Context(), l.ref, l.resolved)
		if provider.CodeOf(err) != provider.Exhausted || in.State != provider.StateIncomplete || !strings.Contains(err.Error(), "took the instance back") {
			t.Fatalf("Create = %+v, %v", in, err)
		}
		w.Spoil(false)
		l.ref.Progress = in.Progress
		l.up(t)
		if all := w.Instances(); len(all) != 1 {
			t.Errorf("%d instances", len(all))
		}
	})
}

// What only has the Machine's name is somebody else's: it is not touched, and the Machine says so.
func TestStrangerOfTheSameName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		stranger := w.Make("worker-a", "")
		writes := w.Writes()
		in, err := l.Create(t.Context(), l.ref, l.resolved)
		if provider.CodeOf(err) != provider.Exhausted || in.State != "" || !strings.Contains(err.Error(), stranger) || !strings.Contains(err.Error(), "rename or remove it") {
			t.Errorf("Create = %+v, %v", in, err)
		}
		if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) != provider.NotFound || !w.has(stranger) || w.Writes() != writes+1 {
			t.Errorf("Delete = %v", err)
		}
	})
}

// A clone that people make of an instance has its comment: it is nobody's, and never removed.
func TestCopyIsNobodysInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := started(t)
		cloned := w.Make("a-clone", w.Instances()[0].Comment)
		found, err := l.Find(t.Context(), l.ref)
		must(t, err)
		if len(found) != 1 || found[0].ID != in.ID {
			t.Errorf("found %+v", found)
		}
		all, err := l.List(t.Context())
		must(t, err)
		n := slices.IndexFunc(all, func(i provider.Instance) bool { return i.ID == cloned })
		if len(all) != 2 || all[n].UID != "" || all[n].Token != "" || !strings.Contains(all[n].Message, string(l.ref.UID)) {
			t.Errorf("listed %+v", all)
		}
		l.gone(t)
		l.ref.ID, l.ref.ProviderID = cloned, scheme+cloned
		if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "a copy is left alone") || !w.has(cloned) {
			t.Errorf("Delete of the copy = %v", err)
		}
		l.ref.ID, l.ref.ProviderID = "", ""
		if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) != provider.NotFound {
			t.Errorf("Delete = %v", err)
		}
		if err := l.PowerCycle(t.Context(), provider.Ref{UID: l.ref.UID, ProviderID: scheme + cloned}); provider.CodeOf(err) != provider.NotFound {
			t.Errorf("PowerCycle of the copy = %v", err)
		}
	})
}

// A step that is refused is not done: the creation goes on with it once it is not refused any more, and nothing is started before.
func TestStepThatIsRefusedIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ call, more, names string }{
		{"PUT diskattachments", "", "providerSpec.value.os_disk.size_gb: 31"},
		{"POST nics", "", "providerSpec.value.network_interfaces[0].vnic_profile_id: " + engine.Profile},
		{"POST tags", "", "ocp43-abcde"},
		{"POST affinitygroups", `"affinity_groups_names": ["workers"]`, "providerSpec.value.affinity_groups_names[0]: workers"},
		{"POST autopincpuandnumanodes", `"auto_pinning_policy": "resize_and_pin"`, "providerSpec.value.auto_pinning_policy: resize_and_pin"},
		{"POST start", "", "start worker-a"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			l := newLife(t, w, c.more)
			method, part, _ := strings.Cut(c.call, " ")
			refuses := true
			w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
				if refuses && r.Method == method && strings.Contains(r.URL.Path, "/"+part) {
					return faulty(http.StatusConflict, "[Cannot do that. Low disk space on Storage Domain data.]"), nil
				}
				return next()
			})
			var err error
			for range 20 {
				var in provider.Instance
				if in, err = l.Create(t.Context(), l.ref, l.resolved); in.State != provider.StateIncomplete {
					t.Fatalf("%s: Create = %+v, %v", c.call, in, err)
				}
				l.ref.Progress = in.Progress
				time.Sleep(time.Second)
			}
			if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), c.names) || !strings.Contains(err.Error(), "Low disk space") {
				t.Errorf("%s: %v", c.call, err)
			}
			if i := w.Instances()[0]; i.Status != "down" {
				t.Errorf("%s: it is %s", c.call, i.Status)
			}
			refuses = false
			l.up(t)
		})
	}
}

// What the engine is busy with is waited for, and is no failure of the attempt.
func TestBusyIsNoRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		left := 3
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if left > 0 && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/start") {
				left--
				return faulty(http.StatusConflict, "[Related operation is currently in progress. Please try again later.]"), nil
			}
			return next()
		})
		l.up(t)
		if left != 0 {
			t.Errorf("asked %d times less", left)
		}
	})
}

// Where no host has room nothing runs, and the Machine says why.
func TestNoHostHasRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.Lock = 0
		w.Busy(true)
		l := newLife(t, w, "")
		var err error
		for range 5 {
			var in provider.Instance
			in, err = l.Create(t.Context(), l.ref, l.resolved)
			l.ref.Progress = in.Progress
		}
		if provider.CodeOf(err) != provider.Exhausted || after(err) != roomAgain || !strings.Contains(err.Error(), "no host that satisfies") {
			t.Errorf("Create = %v, to be asked again in %v", err, after(err))
		}
		w.Busy(false)
		l.up(t)
	})
}

// Of an instance that people start before it is complete nothing more is changed but its note.
func TestInstanceThatPeopleStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := begun(t)
		time.Sleep(2 * time.Second)
		i := w.Instances()[0]
		w.Set(i.ID, "up", "")
		volume := w.Attach(i.ID)
		l.ref.Progress = in.Progress
		writes := w.Writes()
		l.up(t)
		if n := w.Writes() - writes; n != 1 {
			t.Errorf("%d changes", n)
		}
		l.gone(t)
		if left := w.Disks(); !slices.Equal(left, []string{volume}) {
			t.Errorf("disks %v are left, want %s", left, volume)
		}
	})
}

// User data that is no text would be another's at the guest, and one that is not there none.
func TestUserDataThatCannotBeGiven(t *testing.T) {
	t.Parallel()
	for _, data := range []map[string][]byte{nil, {"userData": {0x1f, 0x8b, 0xff}}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			l := newLife(t, w, "")
			l.account.UserData = func(context.Context, string) (map[string][]byte, string, error) { return data, "1", nil }
			in, err := l.Create(t.Context(), l.ref, l.resolved)
			if provider.CodeOf(err) != provider.Exhausted || in.State != "" || !strings.Contains(err.Error(), "openshift-machine-api/worker-user-data") || len(w.Instances()) != 0 {
				t.Errorf("Create = %+v, %v", in, err)
			}
		})
	}
}

// User data that nobody could read is no refusal: it passes.
func TestUserDataThatNobodyCouldRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, newWire(), "")
		l.account.UserData = func(context.Context, string) (map[string][]byte, string, error) {
			return nil, "", errors.New("not ready")
		}
		if in, err := l.Create(t.Context(), l.ref, l.resolved); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "openshift-machine-api/worker-user-data: not ready") {
			t.Errorf("Create = %+v, %v", in, err)
		}
	})
}

// What a guest says of itself is believed of its network cards alone; addresses that move are nobody's.
func TestAddressesAreTheCards(t *testing.T) {
	t.Parallel()
	var i instance
	must(t, json.Unmarshal([]byte(`{"id": "a", "name": "worker-a", "nics": {"nic": [{"mac": {"address": "56:6F:00:00:00:01"}}, {}]}, "reported_devices": {"reported_device": [
		{"name": "br-ex", "mac": {"address": "56:6f:00:00:00:01"}, "ips": {"ip": [{"address": "192.0.2.4"}, {"address": "192.0.2.4"}, {"address": "192.0.2.9"}, {"address": "::ffff:192.0.2.9"}, {"address": "2001:db8::5"}, {"address": "fe80::1"}, {"address": "2001:db8::4"}, {"address": "127.0.0.1"}, {"address": "x"}]}},
		{"name": "veth0", "mac": {"address": "0a:58:00:00:00:01"}, "ips": {"ip": [{"address": "10.128.0.1"}]}}, {"name": "tun0", "ips": {"ip": [{"address": "10.129.0.1"}]}}]}}`), &i))
	want := []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: "worker-a"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.4"}, {Type: corev1.NodeInternalIP, Address: "2001:db8::4"}}
	if diff := cmp.Diff(want, i.addresses([]string{"192.0.2.9", "2001:DB8:0::5"})); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

// The engine's words for what an instance does.
func TestStates(t *testing.T) {
	t.Parallel()
	ours, launched := mark{Cluster: "c", UID: "u"}, mark{Cluster: "c", UID: "u", ID: "a", Launched: true}
	for _, c := range []struct {
		status string
		mark   mark
		want   provider.State
	}{
		{"image_locked", ours, provider.StateIncomplete},
		{"down", ours, provider.StateIncomplete},
		{"down", mark{Cluster: "c", UID: "u", ID: "a"}, provider.StateIncomplete},
		{"down", launched, provider.StateStopped},
		{"down", mark{}, provider.StateStopped},
		{"down", mark{Cluster: "c", UID: "u", ID: "another"}, provider.StateStopped},
		{"wait_for_launch", launched, provider.StatePending},
		{"powering_up", launched, provider.StatePending},
		{"up", launched, provider.StateRunning},
		{"up", ours, provider.StateRunning},
		{"migrating", launched, provider.StateRunning},
		{"unknown", launched, provider.StateRunning},
		{"powering_down", launched, provider.StateRunning},
		{"unassigned", ours, provider.StateIncomplete},
		{"unassigned", launched, provider.StateRunning},
		{"paused", launched, provider.StateStopped},
		{"suspended", launched, provider.StateStopped},
		{"up", mark{Cluster: "c", UID: "u", ID: "a", Leaving: true}, provider.StateDeleting},
	} {
		if got := (instance{ID: "a", Status: c.status, Mark: c.mark}).state(); got != c.want {
			t.Errorf("%s of %+v is %s, want %s", c.status, c.mark, got, c.want)
		}
	}
}

// An engine that takes a start and starts nothing is not asked without end in one call.
func TestStartThatDoesNothingIsNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.Lock = 0
		l := newLife(t, w, "")
		starts := 0
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/start") {
				starts++
				return answered(http.StatusOK, "application/json", `{"status": "complete"}`), nil
			}
			return next()
		})
		for range 3 {
			in, err := l.Create(t.Context(), l.ref, l.resolved)
			if err != nil || in.State != provider.StateIncomplete {
				t.Fatalf("Create = %+v, %v", in, err)
			}
			l.ref.Progress = in.Progress
		}
		if starts == 0 || starts > 3*mostRounds {
			t.Errorf("%d starts in three calls", starts)
		}
	})
}
