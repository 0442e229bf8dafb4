// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// packet is one of a procedure of the daemon.
func packet(procedure, kind, status uint32, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(headSize+len(body)))
	for _, n := range []uint32{programRemote, 1, procedure, kind, 7, status} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return append(b, body...)
}

func numbers(all ...uint32) (b []byte) {
	for _, n := range all {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

// reading is a connection with something to read.
type reading struct {
	net.Conn
	from io.Reader
}

func (r reading) Read(p []byte) (int, error) { return r.from.Read(p) }

// What is a packet comes through as it is, in whatever pieces.
func TestPacketsComeThrough(t *testing.T) {
	t.Parallel()
	domains := append(numbers(1, 4), "a-b-"...)
	domains = append(append(domains, make([]byte, 16)...), numbers(7, 1)...)
	text := bytes.Join([][]byte{
		packet(273, typeReply, statusOK, domains), packet(273, typeReply, 1, append(numbers(1, 2, 1, 4), "what\x00\x00\x00\x02"...)), packet(14, typeReply, statusOK, append(numbers(20000), bytes.Repeat([]byte("xml "), 5000)...)), packet(94, typeReply, statusOK, nil),
	}, nil)
	for name, piece := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader} {
		got, err := io.ReadAll(newWire(reading{from: piece(bytes.NewReader(text))}))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(text), err)
		}
	}
}

// What is no packet, or says that it has more than it has, ends the connection: the library would make room for it, or take the process with it.
func TestPacketsThatLie(t *testing.T) {
	t.Parallel()
	for named, text := range map[string][]byte{
		"another service":     []byte("HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n"),
		"shorter than a head": append(numbers(27), make([]byte, 40)...), "nothing": append(numbers(0), make([]byte, 40)...),
		"larger than any": append(numbers(mostPacket+1), make([]byte, 40)...),
		"many domains":    packet(273, typeReply, statusOK, numbers(1<<31)), "many pools": packet(281, typeReply, statusOK, append(numbers(2, 0), make([]byte, 16)...)),
		"many volumes": packet(282, typeReply, statusOK, numbers(1<<30, 0, 0, 0)), "many cards": packet(353, typeReply, statusOK, numbers(1, 0, 0, 1<<31, 0)),
		"many kinds of authentication": packet(66, typeReply, statusOK, numbers(1<<31)), "a text without an end": packet(282, typeReply, statusOK, numbers(1, 0xffffffff)),
		"no count": packet(273, typeReply, statusOK, nil), "a long text": packet(7, typeReply, statusOK, numbers(0x7ffffff0)), "a long name": packet(24, typeReply, statusOK, numbers(0x7ffffff0)),
		"a long error": packet(7, typeReply, statusError, numbers(1, 2, 1, 0x7ffffff0)), "an error without a text": packet(7, typeReply, statusError, numbers(1, 2)),
		"a stream that is none": packet(7, typeStream, statusOK, numbers(0x7ffffff0)), "an event": packet(7, 2, statusOK, numbers(0x7ffffff0)),
		"what nobody asked": packet(12, typeReply, statusOK, numbers(0x7ffffff0)),
	} {
		w := newWire(reading{from: bytes.NewReader(text)})
		for range 2 {
			_, err := io.ReadAll(w)
			if err == nil || named == "larger than any" && !strings.Contains(err.Error(), "another service") { // no room was made for it
				t.Errorf("%s: %v", named, err)
			}
		}
	}
}

// A daemon that lies does not take the process with it, and its lists are no lists.
func TestListsThatLie(t *testing.T) {
	t.Parallel()
	for _, answer := range [][]byte{packet(66, typeReply, statusOK, numbers(1<<31)), numbers(4), []byte(strings.Repeat("a page for people ", 10))} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				head := make([]byte, headSize)
				_, _ = io.ReadFull(conn, head)
				b := bytes.Clone(answer)
				if len(b) >= headSize {
					copy(b[20:24], head[20:24]) // the serial
				}
				_, _ = conn.Write(b)
			}
		}()
		_, err = openedFor(t, accountOf("qemu+tcp://"+l.Addr().String()+"/system")).List(t.Context())
		wantError(t, err, provider.Unknown)
	}
}

// FuzzWire: whatever a daemon sends, what comes through is packets whose lists have what they say.
func FuzzWire(f *testing.F) {
	f.Add(packet(273, typeReply, statusOK, numbers(0, 0)), uint8(3))
	f.Add(packet(353, typeReply, statusOK, numbers(1, 0, 0, 1<<31, 0)), uint8(0))
	f.Add(packet(341, typeReply, statusOK, numbers(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)), uint8(1))
	f.Add([]byte("HTTP/1.1 200 OK"), uint8(200))
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) {
		w := newWire(reading{from: bytes.NewReader(text)})
		p, all := make([]byte, int(piece)+1), []byte(nil)
		for {
			n, err := w.Read(p)
			all = append(all, p[:n]...)
			if err != nil {
				break
			}
		}
		if !bytes.HasPrefix(text, all) {
			t.Fatalf("%q became %q", text, all)
		}
		for len(all) >= headSize {
			size := binary.BigEndian.Uint32(all)
			if size < headSize || size > mostPacket {
				t.Fatalf("a packet of %d bytes came through", size)
			}
			body := all[headSize:min(int(size), len(all))]
			shape, asked := shapes[binary.BigEndian.Uint32(all[12:])]
			if binary.BigEndian.Uint32(all[24:]) == statusError {
				shape = problem
			}
			if len(all) >= int(size) && binary.BigEndian.Uint32(all[4:]) == programRemote && binary.BigEndian.Uint32(all[16:]) == typeReply {
				if _, ok := walk(shape, body); !ok || !asked {
					t.Fatalf("%x came through as %s", body, shape)
				}
			}
			all = all[min(int(size), len(all)):]
		}
	})
}
