// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

func podOn(node string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid}, Spec: corev1.PodSpec{NodeName: node}}
}

// What was said of one wish is said of no other: it would not be tried, or would be tried again.
func TestKeysDifferByWhatIsWanted(t *testing.T) {
	t.Parallel()
	seen := map[Key]Action{}
	for _, a := range []Action{
		Update{Old: node("7", nil), New: node("7", nil)},
		Update{Old: node("7", nil), New: node("7", nil), Part: "the finalizer alone"},
		UpdateStatus{Old: node("7", nil), New: node("7", nil)},
		Evict{Pod: podOn("n-1", "a")},
		Evict{Pod: podOn("n-2", "a")},
		Evict{Pod: podOn("n-1", "b")},
		CreateInstance{Ref: provider.Ref{UID: "m", Token: "one"}},
		CreateInstance{Ref: provider.Ref{UID: "m", Token: "two"}},
		DeleteInstance{Ref: provider.Ref{UID: "m", ID: "i-1", Token: "one"}},
		DeleteInstance{Ref: provider.Ref{UID: "m", ID: "i-2", Token: "one"}},
		DeleteInstance{Ref: provider.Ref{UID: "m", ID: "i-1", Token: "one", Attempt: true}},
		DeleteInstance{Ref: provider.Ref{UID: "m", ID: "i-1", Token: "two", Attempt: true}},
		DeleteInstance{Ref: provider.Ref{UID: "m", ProviderID: "aws:///z/i-3"}},
		UpdateInstance{Ref: provider.Ref{UID: "m", ID: "i-1"}},
		PowerCycle{Ref: provider.Ref{UID: "m", ID: "i-1"}},
		PowerCycle{Ref: provider.Ref{UID: "m", ID: "i-1"}, To: provider.PowerHeld},
		PowerCycle{Ref: provider.Ref{UID: "m", ID: "i-1"}, To: provider.PowerOn},
	} {
		if other, twice := seen[a.Key()]; twice {
			t.Errorf("%q is %#v and %#v", a.Key(), other, a)
		}
		seen[a.Key()] = a
	}
	if a, b := (DeleteInstance{Ref: provider.Ref{UID: "m", ID: "i-1", Token: "one"}}), (DeleteInstance{Ref: provider.Ref{UID: "m", ID: "i-1", Token: "two"}}); a.Key() != b.Key() {
		t.Errorf("one instance goes twice: %q, %q", a.Key(), b.Key())
	}
}

// No more than a Node's own evictions count against how many there may be, and each of them, of Pods of one name too.
func TestEvictionsOfOneNodeAreCounted(t *testing.T) {
	t.Parallel()
	tried := map[Key]Outcome{}
	for _, a := range []Action{
		Evict{Pod: podOn("n-1", "a")}, Evict{Pod: podOn("n-1", "b")}, Evict{Pod: podOn("n-10", "c")}, Evict{Pod: podOn("an-1", "d")},
		Update{Old: node("7", nil), New: node("7", nil)}, Delete{Object: podOn("n-1", "e")},
	} {
		tried[a.Key()] = Outcome{}
	}
	for name, want := range map[string]int{"n-1": 2, "n-10": 1, "an-1": 1, "n-2": 0} {
		if got := EvictionsFrom(name, tried); got != want {
			t.Errorf("%d evictions from %s, want %d", got, name, want)
		}
	}
}
