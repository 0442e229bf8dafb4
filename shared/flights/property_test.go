// SPDX-License-Identifier: Apache-2.0

package flights

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// traffic is what a story of a Group's callers came to. Everything in it is told in the order in which it happened.
type traffic struct {
	mu       sync.Mutex
	now      int                    // how much has happened
	began    map[string][]int       // when runs of each key began
	underway map[string]int         // runs of each key
	waiters  map[string]map[int]int // who waits for each key: when each call came
	closed   int                    // when the Group was; 0: not yet
	promises []promise
}

// promise is an answer that work will begin.
type promise struct {
	key    string
	at     int
	waited bool // somebody did, for that work
}

// tick returns the time of what happens now. The caller holds mu.
func (w *traffic) tick() int {
	w.now++
	return w.now
}

// most is how many runs are under way at a time.
const most = 3

var errRun = errors.New("the run failed")

// However calls come, leave and are promised something, with runs that fail and a Group that closes: whoever is answered is answered by a
// run that began after he came; what was promised begins after the promise, or somebody who waited then is told that nothing does; of a
// key one run is under way, of all keys no more than the bound; and in the end nothing is remembered (RELIABILITY 2g).
func TestProperties(t *testing.T) {
	t.Parallel()
	const stories = 400
	kept, broken := 0, 0
	for seed := range uint64(stories) {
		synctest.Test(t, func(t *testing.T) {
			w := play(t, seed)
			for _, p := range w.promises {
				if w.beganAfter(p.key, p.at) {
					kept++
				} else if w.closed == 0 || w.closed < p.at {
					t.Errorf("seed %d: what was promised of %s at %d never began", seed, p.key, p.at)
				} else if broken++; !p.waited {
					t.Errorf("seed %d: nobody can be told that what was promised of %s at %d never began", seed, p.key, p.at)
				}
			}
		})
	}
	if kept < stories || broken < stories/20 {
		t.Errorf("%d promises were kept and %d broken by a Close: these stories show little", kept, broken)
	}
}

// beganAfter reports whether a run of key began after a time.
func (w *traffic) beganAfter(key string, at int) bool {
	runs := w.began[key]
	return len(runs) > 0 && runs[len(runs)-1] > at
}

// play lets a hundred calls about nine keys come to a Group, and waits for all of them.
func play(t *testing.T, seed uint64) *traffic {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 8)) //nolint:gosec // to be repeated
	g := New[string, int](most)
	w := &traffic{began: map[string][]int{}, underway: map[string]int{}, waiters: map[string]map[int]int{}}
	var all sync.WaitGroup
	closes := rng.IntN(200) // in half of the stories before the last call comes
	for i := range 100 {
		if i == closes {
			w.mu.Lock()
			w.closed = w.tick()
			w.mu.Unlock()
			all.Go(func() { _ = g.Close(context.Background()) })
			synctest.Wait()
		}
		key := string(rune('a' + rng.IntN(9)))
		takes, patience := time.Duration(rng.IntN(20))*time.Second, time.Duration(1+rng.IntN(20))*time.Second
		if rng.IntN(2) == 0 {
			w.ask(g, key)
		} else {
			fails := rng.IntN(4) == 0
			all.Go(func() { w.call(t, g, i, key, takes, patience, fails) })
		}
		if rng.IntN(3) > 0 {
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		}
		synctest.Wait()
		g.mu.Lock()
		owed := g.owed
		g.mu.Unlock()
		if owed > most {
			t.Errorf("seed %d: %d runs are promised at a time", seed, owed)
		}
	}
	all.Wait()
	time.Sleep(time.Hour) // what was promised to those who do not wait
	synctest.Wait()
	if len(g.next) != 0 || g.owed != 0 || len(g.slots) != 0 {
		t.Errorf("seed %d: %d flights, %d promises and %d places are left", seed, len(g.next), g.owed, len(g.slots))
	}
	return w
}

// ask asks whether it has to wait, and remembers what it is promised.
func (w *traffic) ask(g *Group[string, int], key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !g.Promised(key) {
		return
	}
	waited := false
	for _, came := range w.waiters[key] {
		waited = waited || !w.beganAfter(key, came)
	}
	w.promises = append(w.promises, promise{key, w.tick(), waited})
}

// call waits for a run, and judges the answer.
func (w *traffic) call(t *testing.T, g *Group[string, int], i int, key string, takes, patience time.Duration, fails bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w.mu.Lock()
	came := w.tick()
	if w.waiters[key] == nil {
		w.waiters[key] = map[int]int{}
	}
	w.waiters[key][i] = came
	w.mu.Unlock()
	got, err := g.Do(ctx, key, func(ctx context.Context) (int, error) { return w.run(ctx, t, key, takes, fails) })
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiters[key], i)
	switch {
	case err == nil || errors.Is(err, errRun):
		if got <= came {
			t.Errorf("call %d about %s came at %d and was answered by a run of %d", i, key, came, got)
		}
	case errors.Is(err, ErrClosed) && w.closed > 0, errors.Is(err, ErrLeft) && ctx.Err() != nil:
	default:
		t.Errorf("call %d about %s: %v", i, key, err)
	}
}

// run is the work: it returns when it began.
func (w *traffic) run(ctx context.Context, t *testing.T, key string, takes time.Duration, fails bool) (int, error) {
	t.Helper()
	w.mu.Lock()
	at := w.tick()
	w.began[key] = append(w.began[key], at)
	w.underway[key]++
	under := 0
	for _, n := range w.underway {
		under += n
	}
	if w.underway[key] > 1 || under > most {
		t.Errorf("%d runs of %s at a time, %d of all", w.underway[key], key, under)
	}
	if w.closed > 0 {
		t.Errorf("a run of %s began after the Group was closed", key)
	}
	w.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		t.Errorf("a run of %s was stopped by who left", key)
	}
	w.mu.Lock()
	w.underway[key]--
	w.mu.Unlock()
	if fails {
		return at, errRun
	}
	return at, nil
}
