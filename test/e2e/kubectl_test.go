// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the whole system from outside, as its users see it.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// kubectl runs the real kubectl against one control plane, as an administrator or as somebody else.
type kubectl struct {
	plane *controlplane.ControlPlane
	user  []string
}

// startCluster starts a control plane that lasts until the test ends.
func startCluster(t *testing.T, args ...string) kubectl {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Dir: t.TempDir(), Args: append(args, "--kwok=false"), Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return kubectl{plane: plane}
}

// as returns k for another user.
func (k kubectl) as(user string) kubectl {
	k.user = []string{"--as", user}
	return k
}

// asFunction returns k for a function's ServiceAccount.
func (k kubectl) asFunction(name string) kubectl {
	return k.as("system:serviceaccount:openshift-machine-api:" + name)
}

// run returns what kubectl printed, its warnings included. An error is what it complained about.
func (k kubectl) run(stdin string, args ...string) (string, error) {
	cmd := k.plane.Command(context.Background(), append(slices.Clone(k.user), args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", errors.New(complaint.String() + err.Error())
	}
	return out.String() + complaint.String(), nil
}

// must runs kubectl, which must succeed.
func (k kubectl) must(t *testing.T, args ...string) string {
	t.Helper()
	return k.mustGiven(t, "", args...)
}

// mustGiven runs kubectl with an input; it must succeed.
func (k kubectl) mustGiven(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := k.run(stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// refused runs kubectl with an input; it must fail and say all of want.
func (k kubectl) refused(t *testing.T, stdin string, want []string, args ...string) {
	t.Helper()
	out, err := k.run(stdin, args...)
	if err == nil {
		t.Fatalf("kubectl %s was not refused: %s", strings.Join(args, " "), out)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the answer does not say %q:\n%v", w, err)
		}
	}
}

// creatable returns once objects like these can be created: for up to five seconds after a kind is established, a server that
// has mutating policies for it answers 503, because it reads the kinds' schemas that rarely.
func (k kubectl) creatable(t *testing.T, objects string) {
	t.Helper()
	var err error
	for range 300 {
		if _, err = k.run(objects, "create", "--dry-run=server", "-f", "-"); err == nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatalf("these cannot be created: %v", err)
}

// eventually waits up to a minute for something to hold.
func (k kubectl) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 600 {
		if holds() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("waited a minute in vain: %s", what)
}
