// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// fieldOwners shows that each record has one writer (RELIABILITY §4), under the rights of config/rbac.
func fieldOwners(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const (
			ns     = "openshift-machine-api"
			ledger = `{"metadata":{"annotations":{"machine.openshift.io/ledger":"{}"}}}`
			intent = `{"metadata":{"annotations":{"machine.openshift.io/provision-intent":"{}"}}}`
			place  = `{"metadata":{"labels":{"machine.openshift.io/ordinal":"7"}}}`
			note   = `{"metadata":{"annotations":{"example.com/note":"seen"}}}`
			free   = `{"metadata":{"finalizers":null}}`
		)
		patch := func(object, change string) []string {
			return []string{"-n", ns, "patch", object, "--type=merge", "--dry-run=server", "-p", change}
		}
		set, one := "machineset/story", "machine/by-hand"
		tests := []struct {
			name, user, object, change string
			want                       string // empty: allowed
		}{
			{"the ledger by its writer", "scale-machineset", set, ledger, ""},
			{"the ledger by another function", "provision-machine", set, ledger, "metadata.annotations[machine.openshift.io/ledger] is written by scale-machineset only"},
			{"another annotation by another function", "provision-machine", set, note, ""},
			{"the intent by its writer", "provision-machine", one, intent, ""},
			{"the intent by another function", "scale-machineset", one, intent, "metadata.annotations[machine.openshift.io/provision-intent] is written by provision-machine only"},
			{"the finalizer by its writer", "provision-machine", one, free, ""},
			{"the finalizer by another function", "scale-machineset", one, free, "machine.machine.openshift.io is removed by provision-machine only"},
			{"the ordinal by its writer", "scale-machineset", one, place, ""},
			{"the ordinal by another function", "provision-machine", one, place, "metadata.labels[machine.openshift.io/ordinal] is written by scale-machineset only"},
			{"another annotation of a Machine", "scale-machineset", one, note, ""},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				as := k.asFunction(tt.user)
				if tt.want == "" {
					as.must(t, patch(tt.object, tt.change)...)
					return
				}
				as.refused(t, "", []string{tt.want, "system:serviceaccount:openshift-machine-api:" + tt.user}, patch(tt.object, tt.change)...)
			})
		}
		t.Run("a user who may do everything else", func(t *testing.T) {
			t.Parallel()
			jane := k.as("jane")
			jane.must(t, patch(one, note)...)
			for object, change := range map[string]string{set: ledger, one: intent} {
				jane.refused(t, "", []string{"only, not by", `"jane"`}, patch(object, change)...)
			}
			jane.refused(t, "", []string{`"jane"`}, patch(one, free)...)
			jane.refused(t, "", []string{"only, not by", `"jane"`}, patch(one, place)...)
		})
		t.Run("an administrator", func(t *testing.T) {
			t.Parallel()
			k.must(t, patch(set, ledger)...)
			k.must(t, patch(one, intent)...)
			k.must(t, patch(one, free)...)
		})
	}
}

// hooksWhileDeleting: hooks of a Machine that is going away may be removed, but not added or changed (SPEC B73).
func hooksWhileDeleting(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const ns = "openshift-machine-api"
		k.mustGiven(t, strings.Replace(machine, "name: by-hand", "name: leaving", 1), "create", "-f", "-")
		k.must(t, "-n", ns, "delete", "machine", "leaving", "--wait=false")
		patch := func(hooks string) []string {
			return []string{"-n", ns, "patch", "machine", "leaving", "--type=merge", "-p", `{"spec":{"lifecycleHooks":` + hooks + `}}`}
		}
		const kept = `{"name":"example.com/Backup","owner":"backup-operator"}`
		k.refused(t, "", []string{"spec.lifecycleHooks.preDrain", `"example.com/More"`}, patch(`{"preDrain":[`+kept+`,{"name":"example.com/More","owner":"somebody"}]}`)...)
		k.refused(t, "", []string{"spec.lifecycleHooks.preDrain", `"example.com/Backup"`}, patch(`{"preDrain":[{"name":"example.com/Backup","owner":"somebody"}]}`)...)
		k.refused(t, "", []string{"spec.lifecycleHooks.preTerminate", `"example.com/More"`}, patch(`{"preTerminate":[{"name":"example.com/More","owner":"somebody"}]}`)...)
		k.must(t, patch(`{"preDrain":null}`)...)
		k.asFunction("provision-machine").must(t, "-n", ns, "patch", "machine", "leaving", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		k.refused(t, "", []string{"not found"}, "-n", ns, "get", "machine", "leaving")
	}
}

// rights spot-checks what config/rbac must never allow, beside what the functions cannot do without.
func rights(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const local, kubemark = "openshift-machine-api", "kubemark"
		tests := []struct {
			function, namespace, verb, object string
			want                              bool
		}{
			{"scale-machineset", local, "create", "machines.machine.openshift.io", true},
			{"scale-machineset", local, "patch", "machinesets.machine.openshift.io/story", true},
			{"scale-machineset", local, "get", "secrets/worker-user-data", false},
			{"scale-machineset", local, "create", "events.events.k8s.io", true},
			{"provision-machine", local, "get", "secrets/openstack-cloud-credentials", true},
			{"provision-machine", local, "get", "secrets/worker-user-data", true},
			{"provision-machine", local, "get", "secrets/somebody-elses", false},
			{"provision-machine", local, "list", "secrets", false},
			{"provision-machine", "default", "get", "secrets/worker-user-data", false},
			{"provision-machine", local, "delete", "machines.machine.openshift.io", false},
			{"provision-machine", kubemark, "create", "configmaps", true},
			{"sweep-instances", local, "patch", "configmaps/machine-sweep-state", true},
			{"provision-machine", local, "patch", "configmaps/cluster-autoscaler-status", false},
			{"drain-node", "default", "list", "pods", true},
			{"drain-node", "default", "delete", "pods", false},
			{"drain-node", local, "delete", "machines.machine.openshift.io", false},
			{"link-node", local, "delete", "machines.machine.openshift.io", false},
			{"remediate", local, "delete", "machines.machine.openshift.io", true},
			{"remediate", local, "get", "secrets/aws-cloud-credentials", false},
			{"evaluate-autoscale", local, "patch", "configmaps/cluster-autoscaler-status", true},
			{"evaluate-autoscale", local, "delete", "machines.machine.openshift.io", false},
			{"evaluate-autoscale", local, "get", "secrets/aws-cloud-credentials", false},
			{"sweep-instances", local, "patch", "machines.machine.openshift.io", false},
			{"sweep-instances", kubemark, "delete", "configmaps", true},
			{"dead-letter", local, "list", "machines.machine.openshift.io", false},
		}
		for _, tt := range tests {
			t.Run(tt.function+" "+tt.verb+" "+tt.object, func(t *testing.T) {
				t.Parallel()
				out, err := k.asFunction(tt.function).run("", "auth", "can-i", tt.verb, tt.object, "-n", tt.namespace)
				if got := err == nil && strings.HasPrefix(out, "yes"); got != tt.want {
					t.Errorf("in namespace %s: got %v, want %v (%s%v)", tt.namespace, got, tt.want, out, err)
				}
			})
		}
	}
}
