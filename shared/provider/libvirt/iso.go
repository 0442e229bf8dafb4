// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// noCloudLabel is how cloud-init knows a disk that is for it.
const noCloudLabel = "cidata"

// file is one on a disk.
type file struct {
	name string
	data []byte
}

// Where things lie on an image, in sectors: ISO 9660 with its names in capitals, and Joliet, which has the names as they are.
const (
	sector        = 2048
	firstSector   = 16 // what is before is the machine's
	jolietSector  = 17
	endSector     = 18
	tableSector   = 19 // of paths: little-endian and big-endian, for each of both
	rootSector    = 23 // the folder, for each of both
	dataSector    = 25
	tableSize     = 10 // of a table with the root alone
	mostImage     = 8 << 20
	headOfRecord  = 33
	isFolder      = 2
	firstOfJoliet = "%/E" // UCS-2 of level 3
)

// image returns a disk for cloud-init with some files, given in the order of their names. The same files make the same image.
func image(files []file) ([]byte, error) {
	size := dataSector
	extents := make([]int, len(files))
	for i, f := range files {
		extents[i] = size
		size += (len(f.data) + sector - 1) / sector
	}
	if size*sector > mostImage {
		return nil, provider.Errorf(provider.Invalid, "user data of %d bytes is more than a guest is given", size*sector)
	}
	disk := make([]byte, size*sector)
	at := func(n int) []byte { return disk[n*sector:] }
	for i, names := range []func(string) []byte{plain, joliet} {
		folder := append(record([]byte{0}, rootSector+i, sector, isFolder), record([]byte{1}, rootSector+i, sector, isFolder)...)
		for k, f := range files {
			folder = append(folder, record(names(f.name), extents[k], len(f.data), 0)...)
		}
		copy(at(rootSector+i), folder)
		describe(at(firstSector+i), i, size)
		copy(at(tableSector+2*i), table(binary.LittleEndian, rootSector+i))
		copy(at(tableSector+2*i+1), table(binary.BigEndian, rootSector+i))
	}
	copy(at(endSector), "\xffCD001\x01")
	for i, f := range files {
		copy(at(extents[i]), f.data)
	}
	return disk, nil
}

// plain is a name as ISO 9660 has it: eight capitals, and a version.
func plain(name string) []byte {
	s := strings.ToUpper(strings.ReplaceAll(name, "-", ""))
	return []byte(s[:min(8, len(s))] + ".;1")
}

func joliet(name string) []byte { return ucs2(name + ";1") }

func ucs2(text string) (b []byte) {
	for _, c := range utf16.Encode([]rune(text)) {
		b = binary.BigEndian.AppendUint16(b, c)
	}
	return b
}

// describe writes a volume descriptor: of ISO 9660, or of Joliet.
func describe(d []byte, joliet, size int) {
	fill := func(from, to int, text string) {
		b := []byte(text + strings.Repeat(" ", to-from))
		if joliet == 1 {
			b = ucs2(text + strings.Repeat(" ", to-from))
		}
		copy(d[from:to], b)
	}
	d[0] = byte(1 + joliet) // primary, or supplementary
	copy(d[1:], "CD001\x01")
	fill(8, 40, "")
	fill(40, 72, noCloudLabel)
	both32(d[80:], size)
	if joliet == 1 {
		copy(d[88:], firstOfJoliet)
	}
	both16(d[120:], 1)
	both16(d[124:], 1)
	both16(d[128:], sector)
	both32(d[132:], tableSize)
	binary.LittleEndian.PutUint32(d[140:], uint32(tableSector+2*joliet))
	binary.BigEndian.PutUint32(d[148:], uint32(tableSector+2*joliet+1))
	copy(d[156:], record([]byte{0}, rootSector+joliet, sector, isFolder))
	for _, text := range [][2]int{{190, 318}, {318, 446}, {446, 574}, {574, 702}, {702, 739}, {739, 776}, {776, 813}} {
		fill(text[0], text[1], "")
	}
	for at := 813; at < 881; at += 17 { // nobody says when
		copy(d[at:], bytes.Repeat([]byte("0"), 16))
	}
	d[881] = 1
}

// record is an entry of a folder.
func record(name []byte, extent, size int, flags byte) []byte {
	n := headOfRecord + len(name)
	r := make([]byte, n+n%2)
	r[0] = byte(len(r))
	both32(r[2:], extent)
	both32(r[10:], size)
	copy(r[18:], []byte{70, 1, 1, 0, 0, 0, 0}) // when: 1970
	r[25] = flags
	both16(r[28:], 1)
	r[32] = byte(len(name))
	copy(r[headOfRecord:], name)
	return r
}

// table is the path table of a root without folders.
func table(order binary.ByteOrder, extent int) []byte {
	t := make([]byte, tableSize)
	t[0] = 1
	order.PutUint32(t[2:], uint32(extent))
	order.PutUint16(t[6:], 1)
	return t
}

func both16(b []byte, v int) {
	binary.LittleEndian.PutUint16(b, uint16(v))
	binary.BigEndian.PutUint16(b[2:], uint16(v))
}

func both32(b []byte, v int) {
	binary.LittleEndian.PutUint32(b, uint32(v))
	binary.BigEndian.PutUint32(b[4:], uint32(v))
}
