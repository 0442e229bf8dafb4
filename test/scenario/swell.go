// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// tailOf returns what makes the names in a world as long as names can be; mostly nothing.
func tailOf(seed uint64) string {
	if seed%(2*swells) != 2*swells-1 {
		return ""
	}
	return strings.Repeat("x", 253-len("worker--a")) + "-"
}

// text returns what somebody else wrote: rarely short, or what its place is for.
func (d dice) text(most int) string {
	return pick(d, "", "?", "東京 1\xff", strings.Repeat("ü", most/2), strings.Repeat(`"`, most), strings.Repeat("a.b/", most/4))
}

// swell gives a world contents as long and odd as API servers and clouds let them be.
func (d dice) swell(s *Scenario) {
	for o := range s.World.Objects() {
		if d.rarely() {
			a := map[string]string{"example.com/foreign": strings.Repeat(`"`, 40_000)}
			for k, v := range o.GetAnnotations() {
				a[k] = v
			}
			o.SetAnnotations(a)
		}
	}
	for _, m := range s.World.Machines {
		d.swellSpec(&m.Spec)
	}
	for _, set := range s.World.MachineSets {
		d.swellSpec(&set.Spec.Template.Spec)
		if d.rarely() {
			many := map[string]string{}
			for i := range 100 {
				many[fmt.Sprint("example.com/", strings.Repeat("k", 50), i)] = strings.Repeat("v", 63)
			}
			set.Spec.Selector.MatchLabels = many
			set.Spec.Template.Labels = pick(d, many, map[string]string{"app": strings.Repeat("v", 100_000)})
		}
	}
	d.swellNodes(s)
	for key, a := range s.Accounts {
		s.Accounts[key] = d.swellAccount(a)
	}
}

func (d dice) swellNodes(s *Scenario) {
	for _, n := range s.World.Nodes {
		if d.rarely() {
			metav1.SetMetaDataLabel(&n.ObjectMeta, strings.Repeat("d", 253)+"/"+strings.Repeat("k", 63), strings.Repeat("v", 63))
		}
		for i := range d.IntN(2) * 100 {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: corev1.NodeConditionType(fmt.Sprint("Odd", i)), Status: "True", Reason: d.text(200), Message: strings.ToValidUTF8(d.text(20_000), "?"),
			})
		}
	}
	for i, n := range s.World.Nodes[:min(len(s.World.Nodes), len(s.World.Machines))] { // else they hardly meet
		if m := s.World.Machines[i]; d.often() {
			id := fmt.Sprint("x://own-", i)
			n.Spec.ProviderID, m.Spec.ProviderID = id, &id
			m.Status.NodeRef = pick(d, nil, &corev1.ObjectReference{Kind: "Node", Name: n.Name, UID: n.UID})
			m.DeletionTimestamp, n.DeletionTimestamp = nil, nil
		}
	}
}

func (d dice) swellSpec(spec *machinev1beta1.MachineSpec) {
	if d.rarely() {
		spec.Labels = map[string]string{strings.Repeat("k", 70): "", "fits": strings.Repeat("v", pick(d, 63, 64, 900_000))}
		spec.Annotations = map[string]string{"example.com/large": strings.Repeat("v", pick(d, 1000, 300_000)), "no key": ""}
		spec.Taints = []corev1.Taint{{Key: "odd", Value: strings.Repeat("v", 64), Effect: "NoSchedule"}, {Key: "odd", Effect: "Never"}}
	}
	if d.rarely() {
		spec.ProviderID = new(strings.Repeat("p", pick(d, 1000, 900_000)))
	}
	if d.rarely() {
		spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"kind":"x","odd":"` + strings.Repeat("o", pick(d, 1000, 60_000)) + `"}`)}
	}
	for i := range d.IntN(2) * d.IntN(20) {
		spec.LifecycleHooks.PreDrain = append(spec.LifecycleHooks.PreDrain, machinev1beta1.LifecycleHook{Name: fmt.Sprint("Hook", i), Owner: strings.Repeat("o", 512)})
	}
}

func (d dice) swellAccount(a snapshot.Account) snapshot.Account {
	if a.Err != nil {
		a.Err = &snapshot.Refusal{Code: a.Err.Code, Message: strings.ToValidUTF8(d.text(4096), "?")} // as the runner hands it on
	}
	a.Owner = pick(d, "", strings.Repeat("owner", 20))
	for i := range a.Instances {
		in := &a.Instances[i]
		in.Type, in.Region, in.Zone = d.text(255), d.text(255), d.text(255)
		in.CloudState, in.Message = d.text(255), d.text(4096)
		for k := range d.IntN(2) * 50 {
			in.Addresses = append(in.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: fmt.Sprint(k, strings.Repeat("a", 250))})
		}
		in.Tags = map[string]string{"odd": d.text(255)}
		if in.State == provider.StateFailed && d.rarely() {
			in.ID += strings.Repeat("i", 1000)
		}
	}
	return a
}
