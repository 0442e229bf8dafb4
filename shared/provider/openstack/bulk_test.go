// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// One scan of 5,000 Machines that run costs the lists of the project, page by page, and no request for any one of them;
// nothing is written.
func TestScanOfManyMachinesCostsAHandfulOfRequests(t *testing.T) {
	t.Parallel()
	many := 5000
	if testing.Short() {
		many = 1500
	}
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.password("right")
		o.scans(t, 6)
		m := memory.List[*machine.Machine](o.api)[0]
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: m.Name, UID: "node"}
		if err := o.api.Put(m); err != nil {
			t.Fatal(err)
		}
		o.scans(t, 2)
		o.multiply(t, memory.List[*machine.Machine](o.api)[0], many-1)
		o.scans(t, 1) // it remembers nothing of the others yet
		written, asked := len(o.api.Writes()), len(o.cloud.calls)
		o.scans(t, 1)
		requests := map[string]int{}
		for _, call := range o.cloud.calls[asked:] {
			requests[call]++
		}
		pages := (many + o.cloud.page - 1) / o.cloud.page
		want := map[string]int{"GET /compute/v2.1/servers/detail": pages, "GET /compute/v2.1/servers": pages - 1, "GET /network/v2.0/ports": 2, "GET /volume/v3/" + own + "/volumes/detail": 1}
		if fmt.Sprint(requests) != fmt.Sprint(want) {
			t.Errorf("a scan of %d Machines asks %v, want %v", many, requests, want)
		}
		if w := o.api.Writes()[written:]; len(w) != 0 {
			t.Errorf("a scan in which nothing has changed wrote %v", w)
		}
		for _, m := range memory.List[*machine.Machine](o.api) {
			if machine.Phase(m) != machine.PhaseRunning {
				t.Fatalf("%s is %s", m.Name, machine.Phase(m))
			}
		}
	})
}

// multiply makes n more of a Machine and of its server and port, which differ in what has to be different.
func (o *office) multiply(t *testing.T, m *machine.Machine, n int) {
	t.Helper()
	server := strings.TrimPrefix(*m.Spec.ProviderID, providerID(""))
	port := o.cloud.only(t, "ports")["id"].(string)
	token := valueOf(o.cloud.things["servers"][server].tags(), tagToken)
	objects, err := json.Marshal([]any{m, o.cloud.things["servers"][server].fields, o.cloud.things["ports"][port].fields})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		next := string(uuid.NewUUID())
		text := strings.NewReplacer(string(m.UID), string(uuid.NewUUID()), server, string(uuid.NewUUID()), port, string(uuid.NewUUID()), token, "t-"+next, m.Name, "worker-"+next).Replace(string(objects))
		copied := &machine.Machine{}
		fields := []map[string]any{{}, {}}
		if err := json.Unmarshal([]byte(text), &[]any{copied, &fields[0], &fields[1]}); err != nil {
			t.Fatal(err)
		}
		copied.ResourceVersion = ""
		if err := o.api.Put(copied); err != nil {
			t.Fatal(err)
		}
		for i, kind := range []string{"servers", "ports"} {
			o.cloud.things[kind][fields[i]["id"].(string)] = &thing{fields: fields[i]}
		}
	}
}
