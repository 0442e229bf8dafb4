// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// ownTags is what the fake keeps of an attempt's tags.
func ownTags(uid types.UID, token string) (all []any) {
	for _, tag := range (tags{"ocp43-abcde"}).of(uid, token) {
		all = append(all, tag)
	}
	return all
}

// Two instances of one attempt have its ports between them. The one that is removed by its id takes its own along, and of those
// that nobody has yet it takes what can be no other's.
func TestPortsOfTheOtherInstanceOfAnAttemptStay(t *testing.T) {
	t.Parallel()
	for _, twin := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			l := newLife(t, f, "")
			in := l.up(t)
			f.mu.Lock()
			own := ownTags(l.ref.UID, l.ref.Token)
			other := string(uuid.NewUUID())
			if twin {
				other = f.add("servers", map[string]any{"name": l.ref.Name, "status": "ACTIVE", "tags": own, "metadata": map[string]any{}, "flavor": map[string]any{}})
			}
			port := func(device string) string {
				return f.add("ports", map[string]any{"name": "p", "tags": slices.Clone(own), "device_id": device, "revision_number": 1})
			}
			used, free := port(other), port("")
			f.mu.Unlock()
			if err := l.Delete(t.Context(), provider.Ref{Name: l.ref.Name, ID: in.ID}); err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			for id, goes := range map[string]bool{used: false, free: !twin} {
				list, _ := f.things["ports"][id].fields["tags"].([]any)
				if bound := slices.ContainsFunc(list, func(v any) bool { return strings.HasPrefix(v.(string), tagServer+"=") }); bound != goes {
					t.Errorf("twin %v: port %s of %q goes with instance %s: %v", twin, id, f.things["ports"][id].text("device_id"), in.ID, bound)
				}
			}
		})
	}
}

// By an id alone, as a sweep does it, only what has the cluster's mark is removed: a port or volume that lost it is anybody's.
func TestChildByItsIDIsTheClusters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		f.mu.Lock()
		ours, theirs := tag(tagCluster, "ocp43-abcde"), tag(tagCluster, "another")
		ids := map[string]bool{ // whether it stays
			f.add("ports", map[string]any{"name": "p", "tags": []any{ours}, "device_id": "", "revision_number": 1}):                                             false,
			f.add("ports", map[string]any{"name": "p", "tags": []any{theirs}, "device_id": "", "revision_number": 1}):                                           true,
			f.add("volumes", map[string]any{"name": "v", "status": "available", "attachments": []any{}, "metadata": map[string]any{tagCluster: "ocp43-abcde"}}): false,
			f.add("volumes", map[string]any{"name": "v", "status": "available", "attachments": []any{}, "metadata": map[string]any{tagCluster: "another"}}):     true,
			f.add("volumes", map[string]any{"name": "v", "status": "available", "attachments": []any{}, "metadata": map[string]any{}}):                          true,
		}
		f.mu.Unlock()
		for id, stays := range ids {
			err := l.Delete(t.Context(), provider.Ref{ID: id, Name: "child"})
			time.Sleep(time.Minute)
			f.mu.Lock()
			f.settle()
			there := f.things["ports"][id] != nil || f.things["volumes"][id] != nil
			f.mu.Unlock()
			if there != stays || stays != (provider.CodeOf(err) == provider.NotFound) {
				t.Errorf("Delete %s = %v, there %v", id, err, there)
			}
		}
	})
}

// A port of a Machine that people gave to another instance is that one's network: it stays until they take it away, as volumes do.
func TestPortThatAnotherInstanceHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		l.up(t)
		f.mu.Lock()
		other := f.add("servers", map[string]any{"name": "theirs", "status": "ACTIVE", "tags": []any{}, "metadata": map[string]any{}, "flavor": map[string]any{}})
		own := ownTags(l.ref.UID, l.ref.Token)
		id := f.add("ports", map[string]any{"name": "p", "tags": own, "device_id": other, "revision_number": 1})
		f.mu.Unlock()
		var err error
		for range 20 {
			err = l.Delete(t.Context(), l.ref)
			time.Sleep(30 * time.Second)
		}
		f.mu.Lock()
		if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "theirs ("+other+") has it") || len(f.things["ports"]) != 1 {
			t.Fatalf("Delete = %v with %d ports", err, len(f.things["ports"]))
		}
		f.things["ports"][id].fields["device_id"] = ""
		f.mu.Unlock()
		l.down(t)
	})
}

// What is still the Machine's own instance is not said to be another's: one whose removal was put off is in no list, and nobody can
// detach anything from it.
func TestPortOfAnInstanceThatIsPutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		l.up(t)
		f.mu.Lock()
		former := ownTags(l.ref.UID, "former")
		put := f.add("servers", map[string]any{"name": "former", "status": "SOFT_DELETED", "tags": former, "metadata": map[string]any{}, "flavor": map[string]any{}})
		id := f.add("ports", map[string]any{"name": "p", "tags": slices.Clone(former), "device_id": put, "revision_number": 1})
		f.mu.Unlock()
		err := l.Delete(t.Context(), provider.Ref{ID: id, Name: "p"}) // as a sweep does beside the Machine's instance
		f.mu.Lock()
		defer f.mu.Unlock()
		if err != nil || f.things["ports"][id] != nil {
			t.Errorf("Delete = %v, there %v", err, f.things["ports"][id] != nil)
		}
	})
}
