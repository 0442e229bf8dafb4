// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Which instance a call is about, and nothing else, is destroyed or power-cycled (R-S3): that with the Machine's mark and the cluster's, which
// is no copy; else the one that the Machine records, unless it is another's.
func TestWhoseInstanceItIs(t *testing.T) {
	t.Parallel()
	const id, other, uid = "42000000-0000-0000-0000-000000000001", "42000000-0000-0000-0000-000000000002", "01234567-89ab-cdef-0123-456789abcdef"
	d := &driver{account: provider.Account{ClusterID: "prod"}}
	ours := mark{Cluster: "prod", UID: uid, Token: "t"}
	byMark, recording := provider.Ref{UID: uid}, provider.Ref{UID: uid, ID: id, ProviderID: scheme + id}
	for name, c := range map[string]struct {
		ref  provider.Ref
		have clone
		want bool
	}{
		"by its mark":                            {byMark, clone{Mark: ours, InstanceUUID: uid}, true},
		"of another Machine":                     {byMark, clone{Mark: mark{Cluster: "prod", UID: other}, InstanceUUID: other}, false},
		"of another Machine, though recorded":    {recording, clone{Mark: mark{Cluster: "prod", UID: other}, InstanceUUID: other}, false},
		"of another cluster":                     {byMark, clone{Mark: mark{Cluster: "test", UID: uid}, InstanceUUID: uid}, false},
		"of another cluster, though recorded":    {recording, clone{Mark: mark{Cluster: "test", UID: uid}, InstanceUUID: uid}, false},
		"a copy":                                 {byMark, clone{Mark: ours, InstanceUUID: other}, false},
		"a copy that is recorded":                {recording, clone{Mark: ours, InstanceUUID: other}, true},
		"a copy of another's, though recorded":   {recording, clone{Mark: mark{Cluster: "prod", UID: other}, InstanceUUID: id}, false},
		"a copy, as a leftover":                  {provider.Ref{ID: id, ProviderID: scheme + id}, clone{Mark: ours, InstanceUUID: other}, false},
		"a copy that nobody's mark is on":        {provider.Ref{ProviderID: scheme + id}, clone{Mark: mark{Cluster: "prod"}, InstanceUUID: other}, false},
		"a template":                             {byMark, clone{Mark: ours, InstanceUUID: uid, Template: true}, false},
		"a template that is recorded":            {recording, clone{Mark: ours, InstanceUUID: uid, Template: true}, false},
		"a template without a mark":              {recording, clone{InstanceUUID: uid, Template: true}, false},
		"without a mark, by the Machine's UID":   {byMark, clone{InstanceUUID: uid}, true},
		"without a mark, and recorded":           {recording, clone{InstanceUUID: other}, true},
		"without a mark, and another's":          {byMark, clone{InstanceUUID: other}, false},
		"without a mark or a UID, of a leftover": {provider.Ref{ID: id}, clone{}, false},
		"of the attempt":                         {provider.Ref{UID: uid, Attempt: true, Token: "t"}, clone{Mark: ours, InstanceUUID: uid}, true},
		"of another attempt":                     {provider.Ref{UID: uid, Attempt: true, Token: "u"}, clone{Mark: ours, InstanceUUID: uid}, false},
		"of another attempt, though recorded":    {provider.Ref{UID: uid, ProviderID: scheme + id, Attempt: true, Token: "u"}, clone{Mark: ours, InstanceUUID: uid}, false},
		"a leftover by its id":                   {provider.Ref{ID: id}, clone{Mark: ours, InstanceUUID: uid}, true},
		"a leftover by its provider id":          {provider.Ref{ProviderID: scheme + id}, clone{Mark: ours, InstanceUUID: uid}, true},
		"another than the leftover":              {provider.Ref{ID: other}, clone{Mark: ours, InstanceUUID: uid}, false},
	} {
		c.have.UUID = id
		if got := d.means(c.ref, c.have); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	nameless := clone{Mark: ours, InstanceUUID: uid} // whose id the vCenter does not tell
	if d.means(provider.Ref{}, nameless) {
		t.Error("a call about nothing is about what has no id")
	}
}

// Several instances may have one id. Those with marks are told apart by them; what has none, beside one that has, is a copy, or the Machine's from
// before: nobody can know, and it would go with the Machine.
func TestReplicasAreToldApartByTheirMarks(t *testing.T) {
	t.Parallel()
	marked, bare := clone{UUID: "a", Mark: mark{Cluster: "prod"}}, clone{UUID: "a"}
	for name, c := range map[string]struct {
		found []clone
		told  bool
	}{
		"one":                   {[]clone{bare}, false},
		"two":                   {[]clone{bare, bare}, true},
		"of two ids":            {[]clone{bare, {UUID: "b"}}, false},
		"marked, of two ids":    {[]clone{marked, {UUID: "b"}}, false},
		"one of them is marked": {[]clone{marked, bare}, true},
		"the second is marked":  {[]clone{bare, marked}, true},
		"both are marked":       {[]clone{marked, marked}, false},
		"two beside a marked":   {[]clone{marked, bare, bare}, true},
	} {
		err := ambiguous(provider.Ref{Name: "m"}, c.found)
		if told := provider.CodeOf(err) == provider.Exhausted; told != c.told || !told && err != nil {
			t.Errorf("%s: %v, want it told: %v", name, err, c.told)
		}
	}
}
