// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

const ignitionData = `{"ignition": {"version": "3.2.0"}, "canary": "7f3a"}`

// newDaemon starts a daemon.
func newDaemon(t *testing.T) *libvirtd.Daemon {
	t.Helper()
	l := libvirtd.New()
	must(t, l.Start(t.Context(), nil))
	t.Cleanup(l.Stop)
	return l
}

func uriOf(l *libvirtd.Daemon) string { return "qemu+tcp://" + l.Address + "/system" }

func accountOf(uri string) provider.Account {
	return provider.Account{
		Kind: Kind, ClusterID: "cluster-a389-fmxsv", ClusterUID: "5f0c2ad6-7e53-4fb4-b1a5-1d5e0b8d2f0e", Region: uri, Namespace: "machines", Secret: Secret,
		Credentials: map[string][]byte{keyURIs: []byte("qemu+tls://elsewhere.example.com/system\n" + uri + "\n")},
		UserData: func(_ context.Context, name string) (map[string][]byte, string, error) {
			switch name {
			case "worker-user-data":
				return map[string][]byte{"userData": []byte(ignitionData)}, "1", nil
			case "cloud-init":
				return map[string][]byte{"userData": []byte("#cloud-config\n"), keySSH: []byte("ssh-ed25519 AAAA core@a\n\nssh-ed25519 BBBB core@b\n")}, "1", nil
			case "empty":
				return nil, "1", nil
			case "unread":
				return nil, "", errors.New("the API server is not ready")
			}
			return nil, "", provider.Errorf(provider.Exhausted, "secret %s not found", name)
		},
	}
}

// specOf is a providerSpec with fields replaced; nil takes one away.
func specOf(uri string, change map[string]any) json.RawMessage {
	s := map[string]any{
		"apiVersion": "libvirtproviderconfig.openshift.io/v1beta1", "kind": Kind, "uri": uri, "domainMemory": 8192, "domainVcpu": 4,
		"ignition":             map[string]any{"userDataSecret": "worker-user-data"},
		"volume":               map[string]any{"poolName": libvirtd.Pool, "baseVolumeID": libvirtd.Base, "volumeSize": "30Gi"},
		"networkInterfaceName": libvirtd.Network,
	}
	for k, v := range change {
		inner, merges := v.(map[string]any)
		if _, there := s[k].(map[string]any); merges && there {
			maps.Copy(s[k].(map[string]any), inner)
			continue
		}
		s[k] = v
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// opened opens a driver for a daemon.
func opened(t *testing.T, l *libvirtd.Daemon) *driver {
	t.Helper()
	return openedFor(t, accountOf(uriOf(l)))
}

func openedFor(t *testing.T, a provider.Account) *driver {
	t.Helper()
	d, err := open(t.Context(), a)
	must(t, err)
	t.Cleanup(func() { must(t, d.(*driver).Close(context.Background())) })
	return d.(*driver)
}

func refOf(name string) provider.Ref {
	uid := uuid.NewUUID()
	return provider.Ref{UID: uid, Name: name, Token: machine.Token(uid, 1, "zone")}
}

// created creates an instance of a spec, as often as it takes.
func created(t *testing.T, d *driver, name string, spec json.RawMessage) (provider.Ref, provider.Instance, error) {
	t.Helper()
	r := refOf(name)
	resolved, err := d.Resolve(t.Context(), spec)
	if err != nil {
		return r, provider.Instance{}, err
	}
	i, err := proceed(t.Context(), d, &r, resolved)
	return r, i, err
}

// proceed calls Create until the instance is complete. Errors that prove nothing are tried again, with the progress of before.
func proceed(ctx context.Context, d *driver, r *provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	for try := 0; ; try++ {
		i, err := d.Create(ctx, *r, resolved)
		if len(i.Progress) > 0 {
			r.Progress = i.Progress
		}
		switch {
		case try == 100, err != nil && provider.CodeOf(err) != provider.Unknown:
			return i, err
		case err == nil && i.State != provider.StateIncomplete:
			return i, nil
		}
	}
}

// removed deletes until the driver says that nothing is there.
func removed(t *testing.T, d *driver, r provider.Ref) {
	t.Helper()
	begin := time.Now()
	for err := error(nil); provider.CodeOf(err) != provider.NotFound; err = d.Delete(t.Context(), r) {
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("Delete = %v", err)
		}
	}
}

// wantError wants an error with a code that names things.
func wantError(t *testing.T, err error, code provider.Code, names ...string) {
	t.Helper()
	if err == nil || provider.CodeOf(err) != code {
		t.Errorf("error %v has code %v, want %v", err, provider.CodeOf(err), code)
		return
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not name %q", err, name)
		}
	}
	if strings.Contains(fmt.Sprint(err), "canary") {
		t.Errorf("it tells a secret: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
