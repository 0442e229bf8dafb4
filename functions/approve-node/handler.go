// SPDX-License-Identifier: Apache-2.0

// Package approvenode approves the certificates of kubelets whose Machines are known.
//
//	wakes on  CertificateSigningRequest, Machine; sweep
//	reads     CertificateSigningRequest, Machine, Node, ConfigMap (approve-node)
//	writes    CertificateSigningRequest (approve)
//
// It is optional: most clusters have an approver of their own (B83). A request is approved because of what a provider
// said about a Machine, never because of what the request says about itself (R-B37). What does not fit is never denied:
// it stays pending, for others or for people. More requests than the cluster can need, and none is approved (B82).
package approvenode

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const name = "approve-node"

// Function is the deployable function.
var Function = function.Function{Name: name, Reads: reads, Decide: Decide}

const (
	// spare is how many more requests than there are Machines, or Nodes, may be pending (B82).
	spare = 100
	// countedFor is how long a pending request counts for that.
	countedFor = time.Hour
	// mostOfOne is how many of the requests of one kubelet count: it asks for itself alone, and gets nothing but what is its own.
	mostOfOne = 10
	// patience is how long a request waits for what may still come, an address or a link, before that is told.
	patience = 2 * time.Minute
)

// Decide approves every open request that a Machine stands behind, and says why it does not approve another.
func Decide(s snapshot.Snapshot) plan.Plan {
	var p plan.Plan
	if !s.Has(allRequests) || !s.Has(allMachines) {
		return p
	}
	open := openIn(s)
	if most := max(len(s.Machines), len(s.Nodes)) + spare; pending(open, s.Now) > most {
		about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name}}
		p.Notes = append(p.Notes, plan.Warning(about, "ApprovalsHeld",
			fmt.Sprintf("nothing is approved: more than %d requests of kubelets were made in the last hour and are pending", most)))
		return p
	}
	asking, all := bootstrappersIn(s), indexOf(s)
	for _, r := range meant(s, open) {
		if r.serving() || asking.has(r) {
			p.Add(decide(all, r))
		}
	}
	return p.Untried(s.Outcomes)
}

// meant returns the requests to decide about: all, unless one of them woke us. Each other one has its own event.
func meant(s snapshot.Snapshot, open []request) []request {
	if !s.Request.Is("CertificateSigningRequest") {
		return open
	}
	return slices.DeleteFunc(slices.Clone(open), func(r request) bool { return r.Name != s.Request.Name })
}

// pending counts the requests of the last hour, of one kubelet a few.
func pending(open []request, now time.Time) int {
	n, of := 0, map[string]int{}
	for _, r := range open {
		if now.Sub(r.CreationTimestamp.Time) >= countedFor {
			continue
		}
		if of[r.Spec.Username]++; !r.byNode() || of[r.Spec.Username] <= mostOfOne {
			n++
		}
	}
	return n
}

// decide approves one request, or tells why not.
func decide(s known, r request) plan.Sequence {
	c, err := r.claim()
	if err != nil {
		return tell(r.CertificateSigningRequest, "NodeRequestRefused", err.Error())
	}
	find := clientOf
	if r.serving() {
		find = servingOf
	}
	m, why := find(s, c)
	if why == "" {
		a := plan.Approve{Request: r.CertificateSigningRequest, Why: fmt.Sprintf("node %s is machine %s/%s", c.node, m.Namespace, m.Name)}
		o, _ := s.Outcome(a)
		if o.Result != plan.Refused {
			return plan.Sequence{Do: []plan.Action{a}}
		}
		why = o.Message
	} else if s.Now.Before(r.CreationTimestamp.Add(patience)) {
		return plan.Sequence{}
	}
	var about plan.Object = r.CertificateSigningRequest
	if m != nil {
		about = m
	}
	return tell(about, "NodeNotApproved", fmt.Sprintf("request %s of node %s is not approved: %s", r.Name, c.node, why))
}

// tell returns a warning and nothing to do.
func tell(about plan.Object, reason, message string) plan.Sequence {
	return plan.Sequence{Notes: []plan.Note{plan.Warning(about, reason, message)}}
}
