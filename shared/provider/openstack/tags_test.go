// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Tags that were copied from another instance into a spec do not say whose the new one is (R-S2, R-S3).
func TestTagsOfASpecDoNotSayWhoseItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, `"tags": ["machine-cluster=aaa", "machine-uid=0000", "machine-token=t", "team=a"]`)
		in := l.up(t)
		f.mu.Lock()
		sent := f.things["servers"][in.ID].tags()
		f.mu.Unlock()
		named := func(name string) (all []string) {
			for _, tag := range sent {
				if strings.HasPrefix(tag, name+"=") {
					all = append(all, tag)
				}
			}
			return all
		}
		ours := []string{"machine-cluster=ocp43-abcde", "machine-uid=" + string(l.ref.UID), "machine-token=" + l.ref.Token}
		if got := slices.Concat(named("machine-cluster"), named("machine-uid"), named("machine-token")); !slices.Equal(got, ours) || !slices.Contains(sent, "team=a") {
			t.Errorf("sent were the tags %v", sent)
		}
	})
}

// Tags that somebody sets by hand hide no instance either, in whatever order Nova tells them: its Machine, which records it,
// finds and removes it, and nobody else does.
func TestTagsOfAnotherBesideOurs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		in := l.up(t)
		f.mu.Lock()
		s := f.things["servers"][in.ID]
		all := append(s.tags(), "machine-cluster=aaa", "machine-uid=0000")
		slices.Sort(all) // as Nova's index has them
		var told []any
		for _, text := range all {
			told = append(told, text)
		}
		s.fields["tags"] = told
		f.mu.Unlock()
		listed, err := l.List(t.Context())
		if err != nil || len(listed) != 1 || listed[0].Child || listed[0].UID != "" {
			t.Errorf("List = %+v, %v", listed, err)
		}
		other := provider.Ref{UID: "0000", Name: "worker-b"}
		if err := l.Delete(t.Context(), other); provider.CodeOf(err) != provider.NotFound || f.count("servers") != 1 {
			t.Errorf("Delete of another Machine = %v, %d instances are left", err, f.count("servers"))
		}
		l.ref.ID, l.ref.ProviderID = in.ID, in.ProviderID
		l.down(t)
		time.Sleep(time.Minute)
		wantNothing(t, f, "in the end")
	})
}

// Nova takes 50 tags, those of ours among them: a spec that admission lets through works.
func TestMostTagsOfASpecFit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 50
		more, all := "", []string{}
		for n := range most {
			all = append(all, fmt.Sprintf("%q", fmt.Sprint("tag-", n)))
			next := `"tags": [` + strings.Join(all, ", ") + `]`
			if _, err := parse(specWith(next), "openshift-machine-api"); err != nil {
				break
			}
			more = next
		}
		f, a := newFake(), accountOf("secret")
		a.ClusterUID = "f6b2c5ea-2a3c-4b0e-9f1e-2f5d1d1c0a11"
		l := lifeOf(t, f, a, more)
		l.up(t)
		for _, s := range f.things["servers"] {
			if n := len(anyOf(s.fields["tags"])); n != most {
				t.Errorf("the instance has %d tags, with as many of the spec as it may have", n)
			}
		}
	})
}
