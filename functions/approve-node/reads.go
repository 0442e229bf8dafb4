// SPDX-License-Identifier: Apache-2.0

package approvenode

import (
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var (
	allRequests = snapshot.All("CertificateSigningRequest")
	allMachines = snapshot.All("Machine")
	settings    = snapshot.One("ConfigMap", machine.Namespace, name)
)

// reads stops after the one object that woke us unless it is an open request, or a Machine that a request may wait for;
// and after the requests while none is open. Nodes are read by name; all of them are counted only where there are
// requests enough for the count to matter (B82).
func reads(s snapshot.Snapshot) snapshot.Scope {
	var sc snapshot.Scope
	ask := func(q ...snapshot.Query) { sc.Objects = append(sc.Objects, q...) }
	switch {
	case s.Request.Is("CertificateSigningRequest"):
		ask(snapshot.One("CertificateSigningRequest", "", s.Request.Name))
		if len(openIn(s)) == 0 { // not read yet, or of no interest
			return sc
		}
	case s.Request.Is("Machine"):
		ask(snapshot.One("Machine", s.Request.Namespace, s.Request.Name))
		if m := s.Machine(s.Request.Namespace, s.Request.Name); m == nil || !awaited(m, s.Now) {
			return sc
		}
	}
	ask(allRequests)
	open := openIn(s)
	if !s.Has(allRequests) || len(open) == 0 {
		return sc
	}
	ask(settings, allMachines)
	if len(open) > spare {
		ask(snapshot.All("Node"))
		return sc
	}
	for _, r := range meant(s, open) {
		if c, err := r.claim(); err == nil {
			ask(snapshot.One("Node", "", c.node))
		}
	}
	sc.Objects = snapshot.Few(sc.Objects, "Node")
	return sc
}

// Keys of the ConfigMap of the function's name: who may ask for the first certificate of a Node, separated by commas.
const (
	settingUsers  = "bootstrap-users"
	settingGroups = "bootstrap-groups"
)

// bootstrappers are those who may ask for the first certificate of a Node (B80).
type bootstrappers struct{ users, groups []string }

// bootstrappersIn returns what the ConfigMap says; without it, OpenShift's account and everybody with a bootstrap token.
func bootstrappersIn(s snapshot.Snapshot) bootstrappers {
	b := bootstrappers{
		users:  []string{"system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"},
		groups: []string{"system:bootstrappers"},
	}
	cm := s.ConfigMap(machine.Namespace, name)
	if cm == nil {
		return b
	}
	if v, ok := cm.Data[settingUsers]; ok {
		b.users = split(v)
	}
	if v, ok := cm.Data[settingGroups]; ok {
		b.groups = split(v)
	}
	return b
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \t\n", r) })
}

// has reports whether one of b made the request.
func (b bootstrappers) has(r request) bool {
	return slices.Contains(b.users, r.Spec.Username) ||
		slices.ContainsFunc(r.Spec.Groups, func(g string) bool { return slices.Contains(b.groups, g) })
}
