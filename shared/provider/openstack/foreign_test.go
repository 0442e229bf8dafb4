// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// deaf is a cloud that does not know, or not allow, some filters of its lists: it leaves them out without a word.
type deaf struct {
	*fake
	to map[string]string // by what the path contains
}

// RoundTrip implements [http.RoundTripper].
func (d deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	q := r.URL.Query()
	for path, filter := range d.to {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, path) {
			q.Del(filter)
		}
	}
	r.URL.RawQuery = q.Encode()
	return d.fake.RoundTrip(r)
}

// deafTo returns a Machine in such a cloud.
func deafTo(t *testing.T, f *fake, more string, to map[string]string) *life {
	t.Helper()
	l := newLife(t, f, more)
	d, err := line(func(*cloud) (http.RoundTripper, error) { return deaf{f, to}, nil }).Open(t.Context(), accountOf("secret"))
	if err != nil {
		t.Fatal(err)
	}
	l.Driver = d
	return l
}

// Cinder leaves out filters that its option query_volume_filters does not name; Neutron without the extension for tags, and
// Nova and Neutron of some age, those that they do not know. What others have made is neither used nor removed then (R-S3).
func TestListsThatIgnoreTheirFilterRemoveNothingOfOthers(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]map[string]string{
		"volumes":     {"/volumes/detail": "metadata"},
		"ports":       {"/ports": "tags"},
		"fresh ports": {"/ports": "description"},
		"instances":   {"/servers/detail": "tags"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { besideOthers(t, to) })
		})
	}
}

// besideOthers takes an instance up and down where another Machine, and others, have things of their own.
func besideOthers(t *testing.T, to map[string]string) {
	t.Helper()
	const disks = `"rootVolume": {"diskSize": 20}, "additionalBlockDevices": [{"name": "etcd", "sizeGiB": 10, "storage": {"type": "Volume"}}]`
	f := newFake()
	theirs := lifeOf(t, f, accountOf("secret"), disks).up(t)
	f.add("volumes", map[string]any{"name": "pvc-of-a-database", "status": "available", "metadata": map[string]any{}, "created_at": "2020-01-01T00:00:00.000000"})
	f.add("ports", map[string]any{"name": "of-something-else", "tags": []any{}, "device_id": "22222222-2222-2222-2222-222222222222", "revision_number": 1, "description": ""})
	f.add("servers", map[string]any{"name": "somebodys", "status": "ACTIVE", "ports": []string{}, "tags": []any{}, "flavor": map[string]any{}})
	before := map[string]int{"servers": f.count("servers"), "ports": f.count("ports"), "volumes": f.count("volumes")}
	l := deafTo(t, f, disks, to)
	if in := l.up(t); in.ID == theirs.ID {
		t.Errorf("another Machine's instance %s was found", in.ID)
	}
	l.down(t)
	time.Sleep(time.Minute)
	for kind, n := range before {
		if left := f.count(kind); left != n {
			t.Errorf("%d %s are left of the %d that others have", left, kind, n)
		}
	}
}

// A cluster that was restored beside the one that it is a copy of, under an id of its own, has Machines with the same UIDs, which
// record the same instances: those are the other's (R-S3).
func TestInstanceOfTheClusterThatWasCopiedStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		in := l.up(t)
		r := l.ref
		r.ID, r.ProviderID = in.ID, in.ProviderID
		a := accountOf("secret")
		a.ClusterID = "ocp43-copied"
		copied, err := providerOf(f).Open(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := copied.Find(t.Context(), r); err != nil || len(found) != 0 {
			t.Errorf("Find = %v, %v, want none", found, err)
		}
		for range 3 {
			_ = copied.Delete(t.Context(), r)
			time.Sleep(10 * time.Second)
		}
		if found, err := l.Find(t.Context(), r); err != nil || len(found) != 1 || f.count("ports") != 1 {
			t.Errorf("the instance is %v, %v, with %d ports", found, err, f.count("ports"))
		}
	})
}
