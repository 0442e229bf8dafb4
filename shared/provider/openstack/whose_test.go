// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Which instance a call is about, and nothing else, is removed or power-cycled (R-S3): that with the Machine's tag and the cluster's, else
// the one that the Machine records, unless it is another's.
func TestWhoseInstanceItIs(t *testing.T) {
	t.Parallel()
	const id, other = "01234567-89ab-cdef-0123-456789abcdef", "00000000-0000-0000-0000-000000000000"
	d := &driver{tags: tagsOf("prod")}
	ours, another := d.tags.of("mine", "t"), tagsOf("test").of("mine", "t")
	byTag, recording := provider.Ref{UID: "mine"}, provider.Ref{UID: "mine", ID: id, ProviderID: providerID(id)}
	for name, c := range map[string]struct {
		ref  provider.Ref
		tags []string
		want bool
	}{
		"by its tag":                            {byTag, ours, true},
		"of another Machine":                    {byTag, d.tags.of("theirs", "t"), false},
		"of another Machine, though recorded":   {recording, d.tags.of("theirs", "t"), false},
		"of another cluster":                    {byTag, another, false},
		"of another cluster, though recorded":   {recording, another, false},
		"without the cluster's tag":             {byTag, []string{tag(tagUID, "mine")}, false},
		"without it, and recorded":              {recording, []string{tag(tagUID, "mine")}, true},
		"of another Machine without it":         {recording, []string{tag(tagUID, "theirs")}, false},
		"of two Machines without it":            {recording, []string{tag(tagUID, "mine"), tag(tagUID, "theirs")}, false},
		"of two Machines":                       {byTag, append(d.tags.of("theirs", "t"), ours...), false},
		"of two Machines, and recorded":         {recording, append(d.tags.of("theirs", "t"), ours...), true},
		"without tags":                          {byTag, nil, false},
		"without tags, and recorded":            {recording, []string{"theirs"}, true},
		"without tags, and another is recorded": {provider.Ref{UID: "mine", ID: id, ProviderID: providerID(other)}, nil, false},
		"of the attempt":                        {provider.Ref{UID: "mine", Attempt: true, Token: "t"}, ours, true},
		"of another attempt":                    {provider.Ref{UID: "mine", Attempt: true, Token: "u"}, ours, false},
		"of another attempt, though recorded":   {provider.Ref{UID: "mine", ProviderID: providerID(id), Attempt: true, Token: "u"}, ours, false},
		"of no attempt, though recorded":        {provider.Ref{UID: "mine", ProviderID: providerID(id), Attempt: true, Token: "t"}, nil, false},
		"a leftover by its id":                  {provider.Ref{ID: id}, d.tags.of("gone", "t"), true},
		"a leftover by its provider id":         {provider.Ref{ProviderID: providerID(id)}, ours, true},
		"another than the leftover":             {provider.Ref{ID: other}, ours, false},
		"a leftover of another cluster":         {provider.Ref{ID: id}, another, false},
		"a leftover by its id, without tags":    {provider.Ref{ID: id}, nil, false},
	} {
		if got := d.means(c.ref, server{ID: id, Tags: c.tags}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
