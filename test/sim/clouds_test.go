// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/aws"
	"github.com/machine-functions/machine-functions/shared/provider/vsphere"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/ec2"
	"github.com/machine-functions/machine-functions/test/local/vcenter"
)

// secret is what nobody may read anywhere but in its Secret.
const secret = "canary-7f3a"

// pair is a cluster whose Machines are in two clouds, by the drivers that reach real ones, with processes that live on.
type pair struct {
	*World
	EC2     *ec2.Region
	runners []*runner.Runner
	log     *syncBuffer
}

func newPair(t *testing.T) *pair {
	t.Helper()
	w := NewWorld(scalemachineset.Function, provisionmachine.Function)
	w.clock = time.Now().Truncate(time.Second)
	p := &pair{World: w, log: &syncBuffer{}}
	var err error
	if p.EC2, err = (&ec2.Cloud{Key: "AKIARIGHT"}).Serve(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.EC2.Stop)
	vc, err := vcenter.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vc.Stop)
	table := []provider.Provider{aws.Provider(nil), vsphere.Provider(nil)}
	for _, f := range w.Functions {
		api := w.as(f.Name)
		p.runners = append(p.runners, &runner.Runner{
			Function: f, Cluster: api, Clock: w.Now, Clouds: runner.NewClouds(table, api.Secret),
			Log: slog.New(slog.NewJSONHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
	}
	host, port, err := net.SplitHostPort(vc.Host)
	if err != nil {
		t.Fatal(err)
	}
	p.put("vsphere-cloud-credentials", map[string]string{host + ".username": "machines@vsphere.local", host + ".password": secret, host + ".port": port, host + ".ca": string(vc.CA)})
	p.put("worker-user-data", map[string]string{"userData": `{"ignition": {"version": "3.2.0"}}`})
	const filters = `{"filters": [{"name": "tag:Name", "values": ["cluster-8trtb-rlgsx-%s"]}]}`
	for name, of := range map[string]string{
		"on-aws":     "aws-cloud-credentials",
		"on-nothing": "azure-cloud-credentials", // nobody made it
	} {
		p.set(t, name, fmt.Sprintf(`{"kind": "AWSMachineProviderConfig", "apiVersion": "machine.openshift.io/v1beta1", "ami": {"id": "ami-0f1d83dd6ffe4c9de"},
			"instanceType": "m5a.4xlarge", "placement": {"region": "us-east-2", "availabilityZone": "us-east-2b"}, "subnet": `+filters+`, "securityGroups": [`+filters+`],
			"userDataSecret": {"name": "worker-user-data"}, "credentialsSecret": {"name": %q}}`, "private-us-east-2b", "worker-sg", of))
	}
	p.set(t, "on-vsphere", fmt.Sprintf(`{"kind": "VSphereMachineProviderSpec", "apiVersion": "machine.openshift.io/v1beta1", "template": %q,
		"workspace": {"server": %q, "datacenter": "DC0", "folder": "/DC0/vm/cluster-a389-fmxsv", "datastore": "LocalDS_0", "resourcePool": "/DC0/host/DC0_C0/Resources/workers"},
		"network": {"devices": [{"networkName": "VM Network"}]}, "numCPUs": 4, "memoryMiB": 12288, "diskGiB": 30,
		"userDataSecret": {"name": "worker-user-data"}, "credentialsSecret": {"name": "vsphere-cloud-credentials"}}`, vcenter.Template, vc.Host))
	return p
}

func (p *pair) put(name string, values map[string]string) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name}, Data: map[string][]byte{}}
	for k, v := range values {
		s.Data[k] = []byte(v)
	}
	p.API.PutSecret(s)
}

func (p *pair) set(t *testing.T, name, spec string) {
	t.Helper()
	s := Set(name, 2)
	s.Spec.Template.Spec.ProviderSpec.Value = rawExtension(spec)
	if err := p.API.Put(s); err != nil {
		t.Fatal(err)
	}
}

func (p *pair) ticks(t *testing.T, n int) {
	t.Helper()
	for range n {
		p.Pass(10 * time.Second)
		for _, r := range p.runners {
			_, _ = r.Handle(t.Context(), snapshot.Request{}) // what was decided is looked at; a refused call is no success
		}
	}
}

// of returns the Machines of a set.
func (p *pair) of(set string) (all []*machine.Machine) {
	for _, m := range memory.List[*machine.Machine](p.API) {
		if m.Labels[machine.LabelMachineSet] == set {
			all = append(all, m)
		}
	}
	return all
}

// provisioned reports whether a set has two Machines with instances of a scheme.
func (p *pair) provisioned(set, scheme string) bool {
	all := p.of(set)
	for _, m := range all {
		if machine.Phase(m) != machine.PhaseProvisioned || !strings.HasPrefix(machine.ProviderID(m), scheme) {
			return false
		}
	}
	return len(all) == 2 && machine.ProviderID(all[0]) != machine.ProviderID(all[1])
}

// Two clouds in one cluster: the one whose credentials are wrong holds nobody of the other up. Its Machines do not fail,
// say once what is wrong, and ask nothing more for a minute; credentials that are mended are used at once, by the same
// processes. What a Secret holds is read nowhere else (RELIABILITY §4).
func TestTwoCloudsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.put("aws-cloud-credentials", map[string]string{"aws_access_key_id": "AKIAWRONG", "aws_secret_access_key": secret, "aws_endpoint_url": p.EC2.URL})
	began := time.Now() // a refusal stands by this clock
	p.ticks(t, 4)
	asked := len(p.EC2.Calls())
	p.ticks(t, 6)
	if !p.provisioned("on-vsphere", "vsphere://") {
		t.Errorf("while EC2 refuses, vSphere has %s", state(p.World))
	}
	if now := len(p.EC2.Calls()); asked == 0 || now != asked && time.Since(began) < time.Minute {
		t.Errorf("EC2 was asked %d times, and %d times more in the minute after its refusal", asked, now-asked)
	}
	for set, names := range map[string]string{"on-aws": "openshift-machine-api/aws-cloud-credentials", "on-nothing": "openshift-machine-api/azure-cloud-credentials"} {
		for _, m := range p.of(set) {
			said := slices.DeleteFunc(slices.Clone(m.Status.Conditions), func(c machine.Condition) bool { return !strings.Contains(c.Message, names) })
			if machine.Phase(m) != machine.PhaseProvisioning || len(said) != 1 || said[0].Status == corev1.ConditionTrue {
				t.Errorf("%s is %s, %+v", m.Name, machine.Phase(m), m.Status.Conditions)
			}
			if n := p.told(m, names); n != 1 {
				t.Errorf("%s is told of %s by %d Events", m.Name, names, n)
			}
		}
	}
	p.put("aws-cloud-credentials", map[string]string{"aws_access_key_id": "AKIARIGHT", "aws_secret_access_key": secret, "aws_endpoint_url": p.EC2.URL})
	for tick := 0; tick < 60 && !p.provisioned("on-aws", "aws:///us-east-2b/"); tick++ {
		p.ticks(t, 1)
	}
	if !p.provisioned("on-aws", "aws:///us-east-2b/") || !p.provisioned("on-vsphere", "vsphere://") || len(p.EC2.Live()) != 2 {
		t.Errorf("with the right credentials: %d instances in EC2; %s", len(p.EC2.Live()), state(p.World))
	}
	written, err := json.Marshal(p.API.Events())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range memory.List[*machine.Machine](p.API) {
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, text...)
	}
	for where, text := range map[string]string{"the log": p.log.String(), "the API": string(written)} {
		if strings.Contains(text, secret) {
			t.Errorf("%s tells a secret", where)
		}
	}
}

// told counts the Events about a Machine whose message contains words.
func (p *pair) told(m *machine.Machine, words string) (n int) {
	for _, e := range p.API.Events() {
		if e.InvolvedObject.UID == m.UID && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, words) {
			n++
		}
	}
	return n
}

// syncBuffer is written to by many.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
