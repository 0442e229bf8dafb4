// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A claim that cannot be read back is none: then every call would make a volume of its own.
func TestClaimIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	at := time.Unix(1790000000, 0)
	for _, what := range []string{"instance", "volume etcd", "volume data@1", "volume [fast]", "volume a b", "volume ä"} {
		for _, text := range []string{"", "web", "a port [of mine]", "[launching instance@1]", strings.Repeat("ä", 255)} {
			written := writeClaim(text, claim{what, at})
			if got := readClaim(written); got.what != what || !got.at.Equal(at) {
				t.Errorf("%q is read as %v, want %s", written, got, what)
			}
			if n := len([]rune(written)); n > 255 {
				t.Errorf("%q has %d characters, more than Neutron takes", written, n)
			}
		}
	}
	if got := readClaim("a port of somebody"); got != (claim{}) {
		t.Errorf("a claim where none is: %v", got)
	}
}

// A volume that no list shows yet is not asked for again, whatever it is called; nor does the description of its port, as long as
// one may be, keep the instance from being made.
func TestVolumeIsAskedForOnceWhateverItIsCalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		network := ""
		for id, n := range f.things["networks"] {
			if n.text("project_id") == own {
				network = id
			}
		}
		l := newLife(t, f, `"networks": [], "ports": [{"networkID": "`+network+`", "description": "`+strings.Repeat("x", 255)+`"}],
			"additionalBlockDevices": [{"name": "data@1", "sizeGiB": 10, "storage": {"type": "Volume"}}]`)
		asked, first := 0, time.Time{}
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			switch {
			case !after:
			case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/volumes"):
				asked, first = asked+1, time.Now()
			case strings.HasSuffix(r.URL.Path, "/volumes/detail") && time.Since(first) < launchFor/2:
				return reply(http.StatusOK, map[string]any{"volumes": []any{}}, nil), nil
			}
			return nil, nil
		}
		l.up(t)
		if asked != 1 {
			t.Errorf("the volume was asked for %d times: %v", asked, l.errs)
		}
		l.down(t)
		wantNothing(t, f, "in the end")
	})
}
