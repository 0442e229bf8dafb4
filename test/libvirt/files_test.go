// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/libvirt"
)

// diskOver is a disk of qcow2, whole, that lies over a file.
func diskOver(backing string) []byte {
	const cluster = 1 << 16
	b := make([]byte, 8*cluster)
	copy(b, "QFI\xfb")
	binary.BigEndian.PutUint32(b[4:], 2)
	binary.BigEndian.PutUint64(b[8:], 512)                   // where the name of the other is
	binary.BigEndian.PutUint32(b[16:], uint32(len(backing))) //nolint:gosec // a short one
	binary.BigEndian.PutUint32(b[20:], 16)                   // bits of a cluster
	binary.BigEndian.PutUint64(b[24:], 1<<20)                // size
	binary.BigEndian.PutUint32(b[36:], 1)
	binary.BigEndian.PutUint64(b[40:], 3*cluster) // table of clusters
	binary.BigEndian.PutUint64(b[48:], cluster)   // of references
	binary.BigEndian.PutUint32(b[56:], 1)
	copy(b[512:], backing)
	binary.BigEndian.PutUint64(b[cluster:], 2*cluster)
	for i := range 4 {
		binary.BigEndian.PutUint16(b[2*cluster+2*i:], 1)
	}
	return b
}

// A daemon takes user data that looks like a disk for one, over whatever file that names: it is no base for another Machine.
func TestUserDataIsNoBase(t *testing.T) { //nolint:paralleltest // the suite beside it counts what there is
	const uri = "qemu+tls://127.0.0.1/system"
	secret := filepath.Join(folder(t), "secret-of-the-host")
	must(t, os.WriteFile(secret, bytes.Repeat([]byte("a secret\n"), 1<<17), 0o600))
	a := connect(t, "qemu:///system")
	a.prepare(t)
	of := account(t, uri)
	of.UserData = func(context.Context, string) (map[string][]byte, string, error) {
		return map[string][]byte{"userData": diskOver(secret)}, "1", nil
	}
	d, err := driver.Provider().Open(t.Context(), of)
	must(t, err)
	resolved, err := d.Resolve(t.Context(), spec(t, uri, nil))
	must(t, err)
	uid := uuid.NewUUID()
	r := provider.Ref{UID: uid, Name: "reader", Token: machine.Token(uid, 1, "zone")}
	eventually(t, "it runs", 2*time.Minute, func() bool {
		in, err := d.Create(t.Context(), r, resolved)
		if len(in.Progress) > 0 {
			r.Progress = in.Progress
		}
		return err == nil && in.State == provider.StateRunning
	})
	pool, err := a.StoragePoolLookupByName("ocp43")
	must(t, err)
	seen := false
	eventually(t, "the daemon looked into it", time.Minute, func() bool {
		vols, _, err := a.StoragePoolListAllVolumes(pool, 1, 0)
		must(t, err)
		for _, v := range vols {
			if !strings.HasPrefix(v.Name, "reader.") || !strings.HasSuffix(v.Name, ".ignition") {
				continue
			}
			text, err := a.StorageVolGetXMLDesc(v, 0)
			must(t, err)
			seen = seen || strings.Contains(text, secret)
			for _, id := range []string{v.Name, v.Key} {
				_, err := d.Resolve(t.Context(), spec(t, uri, map[string]any{"ignition": nil, "volume": map[string]any{"poolName": "ocp43", "baseVolumeID": id}}))
				if provider.CodeOf(err) != provider.Invalid {
					t.Fatalf("%s as base: %v", id, err)
				}
			}
		}
		return seen
	})
	eventually(t, "it is gone", time.Minute, func() bool { return provider.CodeOf(d.Delete(t.Context(), r)) == provider.NotFound })
}
