// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What follows from a Machine's UID stays the same for ever: by it its domain, card and volumes are found that former versions made.
func TestNamesStayTheSame(t *testing.T) {
	t.Parallel()
	const uid = types.UID("6b0d1a34-0000-4000-8000-000000000001")
	m := mark{Cluster: "cluster-a389-fmxsv", Of: "5f0c2ad6-7e53-4fb4-b1a5-1d5e0b8d2f0e", UID: uid, Token: "betq5lmarrdm3mcqddkehfq96d3d87q5", Stem: stem("worker-a"), Pool: "default", Host: "4c4c4544-0043-1046-8035-b7c04f4d3132 qemu:///system"}
	for what, got := range map[string][2]string{
		"UUID":    {idOf(uuidOf(uid)), "b6479316-5d94-5884-ab1a-5b7cc1965c86"},
		"address": {macOf(uid), "52:a5:45:d1:f1:2a"},
		"volume":  {m.volume(roleRoot), "worker-a.929aedef9ec0b61b.5f0c2ad6-7e53-4fb4-b1a5-1d5e0b8d2f0e.6b0d1a34-0000-4000-8000-000000000001.betq5lmarrdm3mcqddkehfq96d3d87q5.root"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %s, want %s", what, got[0], got[1])
		}
	}
}

// The names of volumes are read as they were written, whatever people call disks and clusters; what is no such name is nobody's.
func TestNamesOfVolumes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"worker-a", "", "os/disk", "a.b.c", ".hidden", "..", strings.Repeat("n", 300), "ü", "a b"} {
		for _, of := range []string{"", "5f0c2ad6-7e53-4fb4-b1a5-1d5e0b8d2f0e"} {
			m := mark{Cluster: name, Of: of, UID: "6b0d1a34-0000-4000-8000-000000000001", Token: "T", Stem: stem(name)}
			for _, role := range []string{roleRoot, roleIgnition, roleCloudInit} {
				text := m.volume(role)
				n, ours := parseVolume(text)
				if !ours || n.String() != text || n != n.sealed(name, "", "") || n == n.sealed(name, "another host", "") || n == n.sealed(name, "", "another pool") || n.Mark != of || n.UID != string(m.UID) || n.Token != "T" || n.Role != role || len(text) > 255 || strings.ContainsAny(text, "/ ") {
					t.Errorf("%q is read as %+v, %v", text, n, ours)
				}
			}
		}
	}
	good := mark{Cluster: "c", UID: "u", Token: "t"}.volume(roleRoot)
	for _, text := range []string{"", "root", "a.root", strings.TrimSuffix(good, "root"), good + ".bak", strings.Replace(good, ".u.", "..", 1), strings.Replace(good, ".t.", ".t/../t.", 1), "rhcos.qcow2"} {
		if n, ours := parseVolume(text); ours {
			t.Errorf("%q is read as %+v", text, n)
		}
	}
}

// A name that the daemon's files have no room for is refused before anything is made.
func TestNameThatIsTooLong(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	_, _, err := created(t, d, strings.Repeat("w", mostName+1), specOf(uriOf(l), nil))
	wantError(t, err, provider.Invalid, "244 bytes", "245")
	if _, _, err := created(t, d, strings.Repeat("w", mostName), specOf(uriOf(l), nil)); err != nil || len(l.Domains()) != 1 {
		t.Errorf("%v, %d domains", err, len(l.Domains()))
	}
}
