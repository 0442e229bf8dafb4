// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	linknode "github.com/machine-functions/machine-functions/functions/link-node"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/aws"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// onEC2 is one Machine on a simulated EC2, where an instance takes several calls.
type onEC2 struct {
	t      *testing.T
	api    *memory.Server
	clouds *runner.Clouds
	now    time.Time
	told   map[string]bool
}

// newOnEC2 returns it with more in its providerSpec, on what serves EC2.
func newOnEC2(t *testing.T, serve http.Handler, more string) *onEC2 {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	w := &onEC2{t: t, now: Start, told: map[string]bool{}}
	w.api = memory.New(func() time.Time { return w.now })
	secret := func(name string, data map[string][]byte) {
		w.api.PutSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name}, Data: data})
	}
	secret("aws-cloud-credentials", map[string][]byte{
		"aws_access_key_id": fmt.Appendf(nil, "AKIA%016d", len(t.Name())), "aws_secret_access_key": []byte("canary"), "aws_endpoint_url": []byte(server.URL),
	})
	secret("worker-user-data", map[string][]byte{"userData": []byte("{}")})
	w.restart()
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "worker-a", Labels: map[string]string{machine.LabelCluster: "cluster-8trtb-rlgsx"}}}
	m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"machine.openshift.io/v1beta1","kind":"AWSMachineProviderConfig","ami":{"id":"ami-0f1d83dd6ffe4c9de"},
		"instanceType":"m5a.4xlarge","subnet":{"filters":[{"name":"tag:Name","values":["cluster-8trtb-rlgsx-private-us-east-2b"]}]},
		"iamInstanceProfile":{"id":"p"},"userDataSecret":{"name":"worker-user-data"},"credentialsSecret":{"name":"aws-cloud-credentials"},` + more + `}`)}
	w.put(m)
	return w
}

// restart forgets what a process remembers of its clouds, as that a call is denied.
func (w *onEC2) restart() {
	w.clouds = runner.NewClouds([]provider.Provider{aws.Provider(nil)}, w.api.As("provision-machine").Secret)
}

func (w *onEC2) put(o plan.Object) {
	w.t.Helper()
	if err := w.api.Put(o); err != nil {
		w.t.Fatal(err)
	}
}

// scan lets each of these scan so often, as long as that lies apart.
func (w *onEC2) scan(times int, apart time.Duration, all ...function.Function) {
	w.t.Helper()
	for range times {
		w.now = w.now.Add(apart)
		time.Sleep(2 * time.Millisecond) // EC2 boots by its own clock
		for _, f := range all {
			r := &runner.Runner{Function: f, Cluster: w.api.As(f.Name), Clock: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler), Clouds: w.clouds}
			p, err := r.Handle(w.t.Context(), snapshot.Request{})
			if err != nil {
				w.t.Fatal(err)
			}
			for _, seq := range p.Do {
				p.Notes = append(p.Notes, seq.Notes...)
			}
			for _, n := range p.Notes {
				w.told[n.Message] = true
			}
		}
	}
}

// machine returns the Machine, or nil.
func (w *onEC2) machine() *machine.Machine {
	m, _ := w.api.Object("Machine", machine.Namespace, "worker-a").(*machine.Machine)
	return m
}

// The credentials may launch, and may not register with the load balancer that the spec names, a right that is often forgotten: the
// instance runs all the same, its kubelet joins, Pods come. The Machine says so, and why it goes no further (B83); whoever deletes it,
// because it does not become Running, has its Node drained like any other (R-S7, R-S8), linked or not.
func TestInstanceThatWaitsForItsBalancerIsDrained(t *testing.T) {
	t.Parallel()
	for _, linked := range []bool{true, false} {
		t.Run(fmt.Sprintf("linked %v", linked), func(t *testing.T) {
			t.Parallel()
			cloud := &ec2.Cloud{Boot: time.Millisecond, Deny: "RegisterInstancesWithLoadBalancer"}
			w := newOnEC2(t, cloud, `"placement":{"region":"us-east-2","availabilityZone":"us-east-2b"},"loadBalancers":[{"name":"apps","type":"classic"}]`)
			all := []function.Function{provisionmachine.Function, drainnode.Function}
			if linked {
				all = append(all, linknode.Function)
			}
			w.scan(12, 10*time.Second, all...)
			ids := slices.Collect(maps.Keys(cloud.Live()))
			if len(ids) != 1 {
				t.Fatalf("live: %v", ids)
			}
			const node = "ip-10-0-0-5.us-east-2.compute.internal"
			ip := ""
			for _, a := range w.machine().Status.Addresses {
				if a.Type == corev1.NodeInternalIP {
					ip = a.Address
				}
			}
			if why := w.machine().Status.ErrorMessage; ip == "" || why == nil || !strings.Contains(*why, "loadBalancers: EC2 in us-east-2: UnauthorizedOperation") {
				t.Errorf("the instance runs; its Machine has addresses %v, error %v, conditions %v", w.machine().Status.Addresses, why, w.machine().Status.Conditions)
			}
			w.put(&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: node},
				Spec:       corev1.NodeSpec{ProviderID: "aws:///us-east-2b/" + ids[0]},
				Status: corev1.NodeStatus{
					Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}},
					Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}},
				},
			})
			w.put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
			w.scan(6, 10*time.Second, all...)
			if linked && w.machine().Status.NodeRef == nil {
				t.Errorf("its Node %s is not linked", node)
			}
			if err := w.api.Remove("Machine", machine.Namespace, "worker-a", memory.Background); err != nil {
				t.Fatal(err)
			}
			for k := 0; len(cloud.Live()) > 0; k++ {
				if k == 40 {
					t.Fatalf("the instance stays: %v", w.machine().Status.Conditions)
				}
				w.scan(1, 10*time.Second, all...)
				if p := memory.Get[*corev1.Pod](w.api, "default", "web"); p != nil && p.DeletionTimestamp != nil {
					end := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
					if err := memory.Patch(w.api, "default", "web", end); err != nil {
						t.Fatal(err)
					}
				}
			}
			if p := memory.Get[*corev1.Pod](w.api, "default", "web"); p != nil && p.DeletionTimestamp == nil {
				t.Errorf("the instance is terminated, the Pod on it was never evicted")
			}
			w.scan(6, 10*time.Second, all...)
			if m := w.machine(); m != nil || w.api.Object("Node", "", node) != nil {
				t.Errorf("the Machine or its Node stays: %v", m)
			}
		})
	}
}

// A dedicated host is allocated, then EC2 refuses the launch for good: the Machine is Failed at once, and what its attempt made is given
// back; nobody else would do so, as the Machine is there (2b.8). Where that is refused it is told, and asked for again.
func TestDedicatedHostOfAFailedMachineIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, deny := range []string{"", "ReleaseHosts"} {
		t.Run("denied "+deny, func(t *testing.T) {
			t.Parallel()
			cloud := &ec2.Cloud{Boot: time.Millisecond}
			var denied atomic.Bool
			denied.Store(deny != "")
			w := newOnEC2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				refuse := func(status int, code, message string) {
					w.Header().Set("Content-Type", "text/xml")
					w.WriteHeader(status)
					_, _ = fmt.Fprintf(w, `<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>x</RequestID></Response>`, code, message)
				}
				switch err := r.ParseForm(); {
				case err == nil && r.Form.Get("Action") == "RunInstances":
					refuse(http.StatusBadRequest, "InvalidParameterValue", "The architecture of the specified instance type does not match that of the AMI")
				case err == nil && r.Form.Get("Action") == deny && denied.Load():
					refuse(http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation.")
				default:
					cloud.ServeHTTP(w, r)
				}
			}), `"placement":{"region":"us-east-2","availabilityZone":"us-east-2b","tenancy":"host","host":{"affinity":"DedicatedHost","dedicatedHost":{"allocationStrategy":"Dynamic"}}}`)
			w.scan(12, 10*time.Second, provisionmachine.Function)
			if m := w.machine(); machine.Phase(m) != machine.PhaseFailed || !strings.Contains(*m.Status.ErrorMessage, "architecture") {
				t.Fatalf("phase %s, conditions %v", machine.Phase(m), m.Status.Conditions)
			}
			if n := len(cloud.Hosts()); deny != "" && n != 1 || deny == "" && n != 0 {
				t.Fatalf("hosts %v", cloud.Hosts())
			}
			if deny != "" {
				if !strings.Contains(fmt.Sprint(w.told), "the cloud does not remove what was left by attempt 1") {
					t.Errorf("told: %v", w.told)
				}
				denied.Store(false)
				w.restart()
				w.scan(40, 10*time.Second, provisionmachine.Function)
			}
			if len(cloud.Hosts()) > 0 {
				t.Errorf("hosts of a Machine that is Failed: %v, told %v", cloud.Hosts(), w.told)
			}
			version := w.machine().ResourceVersion
			w.scan(12, 10*time.Second, provisionmachine.Function)
			if now := w.machine().ResourceVersion; now != version {
				t.Errorf("version %s became %s, though nothing is left to do", version, now)
			}
		})
	}
}
