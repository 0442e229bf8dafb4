// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"slices"
	"sync"
	"testing"
)

// Invocations that ask for the same list at the same time share one that began after they asked. One that was under way is
// not for whoever comes later: what woke him may have happened after it.
func TestListsAreShared(t *testing.T) {
	t.Parallel()
	const many = 20
	begun, proceed := make(chan struct{}), make(chan struct{})
	first := func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-proceed
		podPage("7", "", "old")(w, r)
	}
	f, c := serve(t, first, podPage("8", "", "new"))
	var all sync.WaitGroup
	all.Go(func() {
		if got, err := observePods(t, c); err != nil || !slices.Equal(got, []string{"old at-7"}) {
			t.Errorf("the first: pods %q, error %v", got, err)
		}
	})
	<-begun
	var waiting sync.WaitGroup
	c.lists.Joined = waiting.Done
	waiting.Add(many - 1) // one of them begins what the others join
	for range many {
		all.Go(func() {
			if got, err := observePods(t, c); err != nil || !slices.Equal(got, []string{"new at-8"}) {
				t.Errorf("a later one: pods %q, error %v", got, err)
			}
		})
	}
	waiting.Wait()
	close(proceed)
	all.Wait()
	if len(f.asked) != 2 {
		t.Errorf("asked %q, want two lists", f.asked)
	}
}
