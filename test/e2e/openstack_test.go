// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/machine-functions/machine-functions/test/local/stack"
	"github.com/machine-functions/machine-functions/test/openstack"
)

// The walk-through on a real OpenStack: the set whose network does not exist, two zones, fifty pods and back. The servers
// are called as their Machines, and all that they had goes with them (S12–S42, E14–E21).
func TestStoryOnOpenStack(t *testing.T) {
	if testing.Short() || os.Getenv(openstack.Variable) == "" {
		t.Skip("make test-openstack runs this")
	}
	s := playOn(t, "openstack")
	t.Run("servers", func(t *testing.T) { checkServers(t, s) })
	t.Run("end", func(t *testing.T) { checkNothingIsLeft(t, s) })
}

const storysMark = "machine-cluster=cluster-a389-fmxsv" // config/samples/infrastructure.yaml

func checkServers(t *testing.T, s *stack.Stack) {
	t.Helper()
	project := projectOf(t)
	all, err := openstack.All(t.Context(), servers.List(project.Compute, servers.ListOpts{Tags: storysMark}), servers.ExtractServers)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range all {
		names = append(names, one.Name+" "+one.Status)
	}
	slices.Sort(names)
	out, err := s.Kubectl(t.Context(), "get", "machines", "-n", "openshift-machine-api", "--no-headers")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if got := strings.Join(fields[1:5], " "); got != "Running 4c12g30d regionOne nova" {
			t.Errorf("Machine %s is shown as %s", fields[0], got)
		}
		want = append(want, fields[0]+" ACTIVE")
	}
	if !slices.Equal(names, want) {
		t.Errorf("servers %v, want %v", names, want)
	}
	if n, err := project.Count(t.Context(), storysMark); err != nil || n != (openstack.Tally{Servers: 3, Ports: 3}) {
		t.Errorf("there is %+v, %v; want 3 servers with a port each", n, err)
	}
}

func checkNothingIsLeft(t *testing.T, s *stack.Stack) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if out, err := s.Kubectl(ctx, "delete", "machinesets", "--all", "-n", "openshift-machine-api"); err != nil {
		t.Fatal(err, out)
	}
	for {
		out, err := s.Kubectl(ctx, "get", "machines", "-A", "-o", "name")
		if err == nil && strings.TrimSpace(out) == "" {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err, out)
		}
		time.Sleep(time.Second)
	}
	if n, err := projectOf(t).Count(t.Context(), ""); err != nil || n != (openstack.Tally{}) {
		t.Errorf("there is %+v, %v; want nothing", n, err)
	}
}

func projectOf(t *testing.T) openstack.Clients {
	t.Helper()
	clouds, err := os.ReadFile(os.Getenv(openstack.Variable))
	if err != nil {
		t.Fatal(err)
	}
	c, err := openstack.Login(t.Context(), clouds, openstack.Project)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
