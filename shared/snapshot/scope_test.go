// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A query that is asked several times is answered once, in the place where it was asked first, however many there are.
func TestMissingIsWhatWasAskedFirst(t *testing.T) {
	t.Parallel()
	a, b, c := One("Node", "", "a"), One("Node", "", "b"), One("Node", "", "c")
	got := Snapshot{}.Answered(b).Missing(Scope{Objects: []Query{c, b, a, c, a}}).Objects
	if want := []Query{c, a}; !slices.Equal(got, want) {
		t.Errorf("missing %v, want %v", got, want)
	}
	var many []Query
	for i := range 50_000 {
		many = append(many, One("PersistentVolumeClaim", "ns", fmt.Sprint("claim-of-a-pod-", i)))
	}
	took := time.Hour
	for try := 0; try < 5 && took > 2*time.Second; try++ { // other programs hold up one, not all
		begin := time.Now()
		if got := (Snapshot{}).Missing(Scope{Objects: many}).Objects; !slices.Equal(got, many) {
			t.Errorf("%d of %d are missing", len(got), len(many))
		}
		took = time.Since(begin)
	}
	if took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Objects that are named one by one are one list where they are many; how often each is named, and what else is asked, changes nothing.
func TestFewAreNamedMoreAreOneList(t *testing.T) {
	t.Parallel()
	others := []Query{{Kind: "Machine", Namespace: "ns"}, One("MachineSet", "ns", "n-0"), {Kind: "Node", Name: "n-0", Again: true}}
	for nodes, listed := range map[int]bool{0: false, few: false, few + 1: true} {
		ask := slices.Clone(others[:2])
		for k := range 2 * nodes {
			ask = append(ask, One("Node", "", fmt.Sprint("n-", k%nodes)))
		}
		ask = append(ask, others[2])
		before, want := slices.Clone(ask), ask
		if listed {
			want = append(slices.Clone(others), All("Node"))
		}
		if got := Few(ask, "Node"); !slices.Equal(got, want) || !slices.Equal(ask, before) {
			t.Errorf("of %d nodes it asks %v", nodes, got)
		}
	}
}

// What was answered is not asked again, but for what has to be fresh and is not; what asks for anything is not empty.
func TestMissingIsWhatNobodyAnswered(t *testing.T) {
	t.Parallel()
	s := Snapshot{Clouds: map[types.UID]Cloud{"known": {}, "fresh": {Fresh: true}}, Accounts: map[string]Account{"known": {}}}
	got := s.Missing(Scope{
		Lookups:  []Lookup{{UID: "known"}, {UID: "fresh", Fresh: true}, {UID: "known", Fresh: true}, {UID: "new"}},
		Accounts: []AccountQuery{{Key: "known"}, {Key: "new"}},
	})
	if !slices.Equal(got.Lookups, []Lookup{{UID: "known", Fresh: true}, {UID: "new"}}) || !slices.Equal(got.Accounts, []AccountQuery{{Key: "new"}}) {
		t.Errorf("missing %+v", got)
	}
	for _, sc := range []Scope{{Objects: []Query{All("Node")}}, {Lookups: got.Lookups}, {Accounts: got.Accounts}} {
		if sc.Empty() {
			t.Errorf("%+v is empty", sc)
		}
	}
	if !(Scope{}).Empty() {
		t.Error("nothing is something")
	}
}
