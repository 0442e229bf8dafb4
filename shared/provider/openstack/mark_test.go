// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// All that an attempt makes carries the mark of its cluster, or none where it was begun without, as by a former version; each list tells it,
// to another cluster of the same id too (RELIABILITY 2b.10).
func TestAllThatIsMadeCarriesTheMark(t *testing.T) {
	t.Parallel()
	const mark = types.UID("f6b2c5ea-2a3c-4b0e-9f1e-2f5d1d1c0a11")
	for _, begun := range []types.UID{"", mark} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			a := accountOf("secret")
			a.ClusterUID = begun
			l := lifeOf(t, f, a, `"trunk": true, "rootVolume": {"diskSize": 20}`)
			a.ClusterUID = mark
			d, err := providerOf(f).Open(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			l.Driver = d // it goes on with what was frozen
			l.up(t)
			for _, kind := range []string{"servers", "ports", "trunks", "volumes"} {
				if f.count(kind) == 0 {
					t.Errorf("no %s", kind)
				}
				for id, thing := range f.things[kind] {
					tags := anyOf(thing.fields["tags"])
					got := valueOf(tags, tagMark)
					if m, has := thing.fields["metadata"].(map[string]any); kind == "volumes" && has {
						got, _ = m[tagMark].(string)
					}
					if got != string(begun) {
						t.Errorf("begun with %q: %s %s carries %q", begun, kind, id, got)
					}
					for _, text := range tags {
						if len(text) > longestTag {
							t.Errorf("%s has %d characters", text, len(text))
						}
					}
				}
			}
			for id := range f.things["servers"] {
				delete(f.things["servers"], id) // what it leaves
			}
			all, err := l.List(t.Context())
			left := 0
			for _, in := range all {
				if left++; in.ClusterUID != begun || !in.Child {
					t.Errorf("begun with %q: the list tells of %+v", begun, in)
				}
			}
			if err != nil || left < 2 {
				t.Errorf("%d are left, %v", left, err)
			}
		})
	}
}

// anyOf returns the texts of a list, whichever type it has.
func anyOf(list any) (all []string) {
	switch list := list.(type) {
	case []any:
		for _, v := range list {
			text, _ := v.(string)
			all = append(all, text)
		}
	case []string:
		all = list
	}
	return all
}

// A spec cannot set the mark: it would hide an orphan.
func TestMarkIsNobodysTag(t *testing.T) {
	t.Parallel()
	f := newFake()
	l := newLife(t, f, `"tags": ["`+tagMark+`=another"]`)
	if own := foreign([]string{tagMark + "=another", "team=a"}); len(own) != 1 || strings.Contains(own[0], tagMark) {
		t.Errorf("of a spec's tags %q are left", own)
	}
	u, _ := l.Driver.(provider.Updater)
	tags, err := u.Tags(specWith(`"tags": ["` + tagMark + `=another"]`))
	for name := range tags {
		if strings.Contains(name, tagMark) {
			t.Errorf("the spec wants %v", tags)
		}
	}
	if err != nil {
		t.Error(err)
	}
}
