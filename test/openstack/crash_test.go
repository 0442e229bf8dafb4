// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/openstack"
)

const (
	callerVariable = "OPENSTACK_CALLER" // the file of the Machine that this process is the caller for
	manyVariable   = "OPENSTACK_MACHINES"
	atOnce         = 6
)

// manyMachines is how many live through the kills: 50, or as many as somebody says who has no hour for it.
var manyMachines = func() int {
	if n, err := strconv.Atoi(os.Getenv(manyVariable)); err == nil && n > 0 {
		return n
	}
	return 50
}()

// record is what would be on the Machine: it outlives its callers.
type record struct {
	Account  map[string][]byte
	Cluster  string
	Ref      provider.Ref
	Attempt  int
	Resolved json.RawMessage
	Down     bool
}

func (r record) save(path string) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// TestCaller is the process that is killed. It goes on from what is on record.
func TestCaller(t *testing.T) { //nolint:paralleltest // it is a process of its own
	path := os.Getenv(callerVariable)
	if path == "" {
		t.Skip("run by TestFiftyInstancesWhileCallersAreKilled")
	}
	text, err := os.ReadFile(path)
	must(t, err)
	var r record
	must(t, json.Unmarshal(text, &r))
	a := (&cloud{clouds: r.Account["clouds.yaml"], name: "openshift"}).account()
	a.ClusterID = r.Cluster
	d, err := driver.Provider().Open(t.Context(), a)
	must(t, err)
	for step := func() bool { return r.down(t, d) }; ; time.Sleep(2 * time.Second) {
		if !r.Down {
			step = func() bool { return r.up(t, d) }
		}
		if step() {
			return
		}
		must(t, r.save(path))
	}
}

// up makes a step as provision-machine would. It reports whether the instance runs.
func (r *record) up(t *testing.T, d provider.Driver) bool {
	t.Helper()
	found, err := d.Find(t.Context(), r.Ref)
	if err != nil {
		t.Log(err)
		return false
	}
	if len(found) > 0 {
		return slices.ContainsFunc(found, func(i provider.Instance) bool { return i.State == provider.StateRunning })
	}
	in, err := d.Create(t.Context(), r.Ref, r.Resolved)
	switch {
	case err == nil && in.State == provider.StateIncomplete:
		r.Ref.Progress = in.Progress
	case provider.CodeOf(err) == provider.Throttled && len(r.Ref.Progress) > 0: // the same step later
	case err != nil && provider.CodeOf(err).Definite():
		r.Attempt++
		r.Ref.Progress, r.Ref.Token = nil, machine.Token(r.Ref.UID, r.Attempt, "crash")
	}
	if err != nil {
		t.Log(err)
	}
	return false
}

func (r *record) down(t *testing.T, d provider.Driver) bool {
	t.Helper()
	err := d.Delete(t.Context(), r.Ref)
	if err != nil && provider.CodeOf(err) != provider.NotFound {
		t.Log(err)
	}
	return provider.CodeOf(err) == provider.NotFound
}

// TestFiftyInstancesWhileCallersAreKilled brings 50 instances up and down. The caller of the k-th is killed at the k-th
// half of a request, before it is sent or before its answer is read, and once more every 23 requests; another one goes
// on. What is left is counted by tag.
func TestFiftyInstancesWhileCallersAreKilled(t *testing.T) {
	t.Parallel()
	c := theCloud(t, "openshift")
	cluster := "crash-" + string(uuid.NewUUID()[:8])
	mark := "machine-cluster=" + cluster
	lives := make([]*life, manyMachines)
	trunk, volume := c.resolve(t, c.spec(t, nil)), c.resolve(t, c.spec(t, map[string]any{"rootVolume": map[string]any{"diskSize": 2}, "trunk": false}))
	for k := range lives {
		resolved := trunk
		if k%5 == 0 {
			resolved = volume
		}
		lives[k] = c.newLife(t, cluster, k, resolved)
	}
	before := c.count(t, "")
	begin := time.Now()
	kills := run(t, lives)
	n := c.count(t, mark)
	t.Logf("%d instances run after %v; callers were killed %d times; there are %d ports, %d trunks, %d volumes",
		n.Servers, time.Since(begin).Round(time.Second), kills, n.Ports, n.Trunks, n.Volumes)
	if n.Servers != manyMachines || n.Ports != manyMachines || n.Trunks != manyMachines-withVolumes() || n.Volumes != withVolumes() {
		t.Errorf("want %d instances and ports, %d trunks, %d volumes", manyMachines, manyMachines-withVolumes(), withVolumes())
	}
	begin = time.Now()
	for _, l := range lives {
		l.down()
	}
	kills = run(t, lives)
	n = c.count(t, mark)
	t.Logf("all are gone after %v; callers were killed %d times; there are %d instances, %d ports, %d trunks, %d volumes",
		time.Since(begin).Round(time.Second), kills, n.Servers, n.Ports, n.Trunks, n.Volumes)
	if n.Servers+n.Ports+n.Trunks+n.Volumes != 0 {
		t.Error("something is left")
	}
	if after := c.count(t, ""); after != before {
		t.Errorf("the project has %+v, and had %+v", after, before)
	}
}

// life is one Machine, and the process that is its caller just now.
type life struct {
	t     *testing.T
	path  string
	gate  *gate
	kills atomic.Int64
}

// withVolumes is how many have a root volume instead of a trunk.
func withVolumes() int { return (manyMachines + 4) / 5 }

func (c *cloud) resolve(t *testing.T, spec json.RawMessage) json.RawMessage {
	t.Helper()
	a := c.account()
	a.ClusterID = "crash"
	d, err := patientProvider().Open(t.Context(), a)
	must(t, err)
	resolved, err := d.Resolve(t.Context(), spec)
	must(t, err)
	return resolved
}

func (c *cloud) newLife(t *testing.T, cluster string, k int, resolved json.RawMessage) *life {
	t.Helper()
	l := &life{t: t, path: filepath.Join(t.TempDir(), "machine.json")}
	l.gate = newGate(t, func(n int) (before, after bool) {
		at := k/2 + 1
		if n < at || (n-at)%23 != 0 {
			return false, false
		}
		l.kills.Add(1)
		return k%2 == 0, k%2 == 1
	})
	uid := uuid.NewUUID()
	text := strings.ReplaceAll(string(c.clouds), services["identity"], l.gate.URL+"/identity")
	must(t, record{
		Account: map[string][]byte{"clouds.yaml": []byte(text)}, Cluster: cluster, Attempt: 1, Resolved: resolved,
		Ref: provider.Ref{UID: uid, Name: fmt.Sprintf("%s-%d", cluster, k), Token: machine.Token(uid, 1, "crash")},
	}.save(l.path))
	return l
}

// down turns the Machine's life round, and counts requests afresh.
func (l *life) down() {
	text, err := os.ReadFile(l.path)
	must(l.t, err)
	var r record
	must(l.t, json.Unmarshal(text, &r))
	r.Down = true
	must(l.t, r.save(l.path))
	l.gate.mu.Lock()
	l.gate.count = 0
	l.gate.mu.Unlock()
	l.kills.Store(0)
}

// run has a caller for each Machine until its work is done, and returns how many were killed.
func run(t *testing.T, lives []*life) (kills int64) {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(atOnce)
	for _, l := range lives {
		g.Go(func() error { return l.call(ctx) })
	}
	must(t, g.Wait())
	for _, l := range lives {
		kills += l.kills.Load()
	}
	return kills
}

// call starts callers until one ends by itself.
func (l *life) call(ctx context.Context) error {
	const most = 15 * time.Minute
	for begin := time.Now(); ; {
		one, end := context.WithCancel(ctx)
		cmd := exec.CommandContext(one, os.Args[0], "-test.run=^TestCaller$", "-test.v")
		cmd.Env = append(os.Environ(), callerVariable+"="+l.path)
		l.gate.mu.Lock()
		l.gate.end = end
		l.gate.mu.Unlock()
		out, err := cmd.CombinedOutput()
		killed := one.Err() != nil
		end()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !killed:
			return fmt.Errorf("%s: %w\n%s", l.path, err, out)
		case time.Since(begin) > most:
			return fmt.Errorf("%s is not done after %v:\n%s", l.path, most, out)
		}
	}
}
