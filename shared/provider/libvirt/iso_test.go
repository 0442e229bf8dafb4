// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/machine-functions/machine-functions/shared/provider"
)

func userDataOf(text string) func(context.Context, string) (map[string][]byte, string, error) {
	return func(context.Context, string) (map[string][]byte, string, error) {
		return map[string][]byte{provider.KeyUserData: []byte(text)}, "2", nil
	}
}

// filesOf reads an image by its Joliet names.
func filesOf(t *testing.T, image string) map[string]string {
	t.Helper()
	disk := []byte(image)
	if len(disk)%sector != 0 || len(disk) < dataSector*sector {
		t.Fatalf("%d bytes are no image", len(disk))
	}
	d := disk[jolietSector*sector:]
	if string(d[1:6]) != "CD001" || d[0] != 2 || string(d[88:91]) != firstOfJoliet || wide(d[40:72]) != noCloudLabel || string(bytes.TrimRight(disk[firstSector*sector+40:firstSector*sector+72], " ")) != noCloudLabel {
		t.Fatalf("the descriptor is %x", d[:100])
	}
	folder := disk[int(binary.LittleEndian.Uint32(d[156+2:]))*sector:]
	all := map[string]string{}
	for at := 0; folder[at] > 0; at += int(folder[at]) {
		r := folder[at:]
		name := r[headOfRecord : headOfRecord+int(r[32])]
		if r[25] == isFolder {
			continue
		}
		from, size := int(binary.LittleEndian.Uint32(r[2:]))*sector, int(binary.BigEndian.Uint32(r[14:]))
		all[strings.TrimSuffix(wide(name), ";1")] = string(disk[from : from+size])
	}
	return all
}

func wide(b []byte) string {
	var units []uint16
	for ; len(b) > 1; b = b[2:] {
		units = append(units, binary.BigEndian.Uint16(b))
	}
	return strings.TrimRight(string(utf16.Decode(units)), " ")
}

// FuzzImage: whatever user data is, it comes to the guest byte for byte, beside nothing else.
func FuzzImage(f *testing.F) {
	f.Add([]byte("#cloud-config\n"), "worker-a")
	f.Add(bytes.Repeat([]byte("a"), sector), "")
	f.Add([]byte{}, "é")
	f.Fuzz(func(t *testing.T, data []byte, meta string) {
		disk, err := image([]file{{"meta-data", []byte(meta)}, {"user-data", data}})
		if err != nil {
			if provider.CodeOf(err) != provider.Invalid || len(data)+len(meta) < mostImage/2 {
				t.Fatal(err)
			}
			return
		}
		got := filesOf(t, string(disk))
		if len(got) != 2 || got["user-data"] != string(data) || got["meta-data"] != meta {
			t.Errorf("%q and %q became %q", meta, data, got)
		}
		again, _ := image([]file{{"meta-data", []byte(meta)}, {"user-data", data}})
		if !bytes.Equal(disk, again) {
			t.Error("the same files make two images")
		}
	})
}

func TestImagesAreBounded(t *testing.T) {
	t.Parallel()
	_, err := image([]file{{"user-data", make([]byte, mostImage)}})
	wantError(t, err, provider.Invalid, "more than a guest is given")
}
