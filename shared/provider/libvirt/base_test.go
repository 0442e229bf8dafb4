// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/binary"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// header is what a disk of qcow2 begins with that lies over a file.
func header(over string) []byte {
	b := make([]byte, 104+len(over))
	copy(b, "QFI\xfb")
	binary.BigEndian.PutUint64(b[8:], 104)
	binary.BigEndian.PutUint32(b[16:], uint32(len(over))) //nolint:gosec // a short one
	copy(b[104:], over)
	return b
}

// Whoever writes specs and user data has no file of the host read to a guest: neither by its path, nor by what he wrote into a volume, nor
// what another Machine got.
func TestFilesThatASpecDoesNotReach(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	d.account.UserData = userDataOf(string(header("/etc/shadow")))
	_, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	m := look(t, l.Domains()["worker-a"].XML).Mark
	if v := l.Volumes(libvirtd.Pool)[m.volume(roleIgnition)]; v.Format != "qcow2" || v.Backing != "/etc/shadow" {
		t.Fatalf("the daemon tells of the user data as of %+v", v)
	}
	l.AddPool("images", "dir")
	l.AddVolume("images", "other.qcow2", true)
	for name, v := range map[string]libvirtd.Volume{
		"layered.qcow2": {Format: "qcow2", Backing: "/etc/shadow", Capacity: 1 << 20}, "disk.vmdk": {Format: "vmdk", Capacity: 1 << 20}, "large.ign": {Format: "raw", Capacity: 1 << 30},
	} {
		l.AddImage(libvirtd.Pool, name, v)
	}
	base := func(id string) map[string]any { return map[string]any{"volume": map[string]any{"baseVolumeID": id}} }
	key := func(id string) map[string]any { return map[string]any{"ignition": nil, "ignKey": id} }
	for what, tt := range map[string]struct {
		change map[string]any
		code   provider.Code
		names  []string
	}{
		"user data as base":             {base(m.volume(roleIgnition)), provider.Invalid, []string{"volume.baseVolumeID", m.volume(roleIgnition), "of a Machine"}},
		"user data as base, by path":    {base(libvirtd.Folder + "/" + m.volume(roleIgnition)), provider.Invalid, []string{"volume.baseVolumeID", "of a Machine"}},
		"a root volume as base":         {base(m.volume(roleRoot)), provider.Invalid, []string{"volume.baseVolumeID"}},
		"a base over a file":            {base("layered.qcow2"), provider.Exhausted, []string{"volume.baseVolumeID", "/etc/shadow", "qemu-img convert"}},
		"a base that may name others":   {base("disk.vmdk"), provider.Exhausted, []string{"volume.baseVolumeID", "vmdk"}},
		"a base of another pool":        {base("/var/lib/libvirt/images/other.qcow2"), provider.NotFound, []string{"volume.baseVolumeID", "other.qcow2", "virsh pool-refresh"}},
		"another Machine's user data":   {key(m.volume(roleIgnition)), provider.Invalid, []string{"ignKey", "of a Machine"}},
		"user data of another pool":     {key("/var/lib/libvirt/images/other.qcow2"), provider.NotFound, []string{"ignKey"}},
		"user data that fills a memory": {key("large.ign"), provider.Exhausted, []string{"ignKey", "large.ign", "1073741824"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, err := d.Resolve(t.Context(), specOf(uriOf(l), tt.change))
			wantError(t, err, tt.code, tt.names...)
		})
	}
	if _, err := d.Resolve(t.Context(), specOf(uriOf(l), base(libvirtd.Folder+"/"+libvirtd.Base))); err != nil {
		t.Errorf("a base by its path: %v", err)
	}
}

// A root volume that the spec wants smaller than its base is as large as that, as with OpenShift: a base that is made anew, and is larger, fails
// no Machine.
func TestBaseThatIsLargerStaysSo(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]uint64{"1Gi": 10 << 30, "10Gi": 10 << 30, "11Gi": 11 << 30} {
		l := newDaemon(t)
		_, _, err := created(t, opened(t, l), "worker-a", specOf(uriOf(l), map[string]any{"volume": map[string]any{"baseVolumeID": libvirtd.Base, "volumeSize": size}}))
		must(t, err)
		root := look(t, l.Domains()["worker-a"].XML).Mark.volume(roleRoot)
		if got := l.Volumes(libvirtd.Pool)[root].Capacity; got != want {
			t.Errorf("a root volume of %s over a base of 10Gi has %d bytes, want %d", size, got, want)
		}
	}
}
