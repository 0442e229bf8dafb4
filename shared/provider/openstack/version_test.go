// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// ancient is a cloud whose gateway drops the header with the microversion: Nova answers as in its first version, which knows no tags.
type ancient struct{ *fake }

// RoundTrip implements [http.RoundTripper].
func (a ancient) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := a.fake.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/servers") {
		return answer, err
	}
	var body map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return nil, err
	}
	all, _ := body["servers"].([]any)
	for _, s := range append(all, body["server"]) {
		if fields, ok := s.(map[string]any); ok {
			delete(fields, "tags")
		}
	}
	text, err := json.Marshal(body)
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, err
}

// Whose an instance is of which no tags are told, not even that it has none, nobody knows: it is neither away nor somebody else's (G5).
func TestInstanceWithoutAWordOfItsTagsIsNotAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		in := l.up(t)
		l.ref.ID, l.ref.ProviderID = in.ID, in.ProviderID
		d, err := line(func(*cloud) (http.RoundTripper, error) { return ancient{f}, nil }).Open(t.Context(), accountOf("secret"))
		if err != nil {
			t.Fatal(err)
		}
		all, err := d.List(t.Context())
		if err == nil || provider.CodeOf(err) != provider.Unknown {
			t.Errorf("List = %+v, %v", all, err)
		}
		byID := l.ref
		byID.UID = ""
		for what, r := range map[string]provider.Ref{"by its Machine": l.ref, "by its id": byID} {
			found, err := d.Find(t.Context(), r)
			if err == nil || provider.CodeOf(err) != provider.Unknown {
				t.Errorf("%s: Find = %+v, %v", what, found, err)
			}
			if err := d.Delete(t.Context(), r); err == nil || provider.CodeOf(err) == provider.NotFound || f.count("servers") == 0 {
				t.Errorf("%s: Delete = %v, %d instances are left", what, err, f.count("servers"))
			}
		}
	})
}
