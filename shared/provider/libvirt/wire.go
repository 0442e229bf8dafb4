// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/digitalocean/go-libvirt"
)

// Of a packet of libvirt's protocol: its length, which counts itself, then program, version, procedure, type, serial and status.
const (
	lengthSize = 4
	headSize   = 28
	// mostPacket is what a daemon sends at most (VIR_NET_MESSAGE_MAX).
	mostPacket = 32<<20 + lengthSize
)

// What a packet is, and the program that it is of.
const (
	typeReply     = 1
	typeStream    = 3
	statusOK      = 0
	statusError   = 1
	programRemote = 0x20008086
)

// shapes are what the answers to all that is asked look like: u is a number of four bytes, i a UUID, s a text, […] a list, or what may be
// there or not. The SDK makes room for as many elements, and as long a text, as an answer says that it has, before it looks for them.
var shapes = map[uint32]string{
	1:   "",                      // REMOTE_PROC_CONNECT_OPEN
	2:   "",                      // REMOTE_PROC_CONNECT_CLOSE
	7:   "s",                     // REMOTE_PROC_CONNECT_GET_CAPABILITIES
	9:   "",                      // REMOTE_PROC_DOMAIN_CREATE
	14:  "s",                     // REMOTE_PROC_DOMAIN_GET_XML_DESC
	23:  "siu",                   // REMOTE_PROC_DOMAIN_LOOKUP_BY_NAME
	24:  "siu",                   // REMOTE_PROC_DOMAIN_LOOKUP_BY_UUID
	29:  "",                      // REMOTE_PROC_DOMAIN_SET_AUTOSTART
	43:  "s",                     // REMOTE_PROC_NETWORK_GET_XML_DESC
	46:  "si",                    // REMOTE_PROC_NETWORK_LOOKUP_BY_NAME
	47:  "si",                    // REMOTE_PROC_NETWORK_LOOKUP_BY_UUID
	60:  "u",                     // REMOTE_PROC_CONNECT_SUPPORTS_FEATURE
	66:  "[u]",                   // REMOTE_PROC_AUTH_LIST
	70:  "u",                     // REMOTE_PROC_AUTH_POLKIT
	77:  "si",                    // REMOTE_PROC_STORAGE_POOL_DEFINE_XML
	84:  "si",                    // REMOTE_PROC_STORAGE_POOL_LOOKUP_BY_NAME
	88:  "s",                     // REMOTE_PROC_STORAGE_POOL_GET_XML_DESC
	93:  "sss",                   // REMOTE_PROC_STORAGE_VOL_CREATE_XML
	94:  "",                      // REMOTE_PROC_STORAGE_VOL_DELETE
	95:  "sss",                   // REMOTE_PROC_STORAGE_VOL_LOOKUP_BY_NAME
	96:  "sss",                   // REMOTE_PROC_STORAGE_VOL_LOOKUP_BY_KEY
	98:  "uuuuu",                 // REMOTE_PROC_STORAGE_VOL_GET_INFO
	99:  "s",                     // REMOTE_PROC_STORAGE_VOL_GET_XML_DESC
	152: "u",                     // REMOTE_PROC_NETWORK_IS_ACTIVE
	153: "u",                     // REMOTE_PROC_NETWORK_IS_PERSISTENT
	154: "u",                     // REMOTE_PROC_STORAGE_POOL_IS_ACTIVE
	196: "siu",                   // REMOTE_PROC_DOMAIN_CREATE_WITH_FLAGS
	208: "",                      // REMOTE_PROC_STORAGE_VOL_UPLOAD
	212: "uu",                    // REMOTE_PROC_DOMAIN_GET_STATE
	231: "",                      // REMOTE_PROC_DOMAIN_UNDEFINE_FLAGS
	234: "",                      // REMOTE_PROC_DOMAIN_DESTROY_FLAGS
	264: "",                      // REMOTE_PROC_DOMAIN_SET_METADATA
	273: "[siu]u",                // REMOTE_PROC_CONNECT_LIST_ALL_DOMAINS
	281: "[si]u",                 // REMOTE_PROC_CONNECT_LIST_ALL_STORAGE_POOLS
	282: "[sss]u",                // REMOTE_PROC_STORAGE_POOL_LIST_ALL_VOLUMES
	283: "[si]u",                 // REMOTE_PROC_CONNECT_LIST_ALL_NETWORKS
	291: "",                      // REMOTE_PROC_NETWORK_UPDATE
	341: "[suuu[s][s]su[s][s]]u", // REMOTE_PROC_NETWORK_GET_DHCP_LEASES
	350: "siu",                   // REMOTE_PROC_DOMAIN_DEFINE_XML_FLAGS
	353: "[s[s][usu]]",           // REMOTE_PROC_DOMAIN_INTERFACE_ADDRESSES
}

// problem is what the SDK reads of an error: its number, its domain, that it has a text, that, how grave it is.
const problem = "uuusu"

var errStream = errors.New("a stream was ended by the daemon")

// wire is a connection whose packets are looked at before the SDK does: one that is shorter than a packet can be, or longer than any is,
// or a list or a text that its packet has no room for, ends the connection with an error, which proves nothing. So does an answer to what
// nobody asks.
type wire struct {
	net.Conn
	ready []byte // of a packet that was looked at
	left  int    // bytes of it that were not read yet
	err   error

	ended  chan struct{} // closed when nothing more can be read
	why    error         // once it is closed
	once   sync.Once
	broken chan error // has why a stream was ended by the daemon
}

func newWire(conn net.Conn) *wire {
	return &wire{Conn: conn, ended: make(chan struct{}), broken: make(chan error, 1)}
}

// alive reports whether the connection may have more to say.
func (w *wire) alive() bool {
	select {
	case <-w.ended:
		return false
	default:
		return true
	}
}

func (w *wire) end(why error) {
	w.once.Do(func() {
		w.why = why
		close(w.ended)
	})
}

// because returns an error of a call on the connection with why that ended, if it did: the SDK says no more than that it was interrupted.
func (w *wire) because(err error) error {
	if _, refused := answered(err); err == nil || refused || w.alive() {
		return err
	}
	return fmt.Errorf("%w: %w", err, w.why)
}

// Close implements [net.Conn].
func (w *wire) Close() error {
	w.end(net.ErrClosed)
	return w.Conn.Close()
}

// Read implements [net.Conn]. One goroutine reads.
func (w *wire) Read(p []byte) (n int, err error) {
	if w.err == nil && len(w.ready) == 0 && w.left == 0 {
		w.err = w.next()
	}
	switch {
	case w.err != nil:
	case len(w.ready) > 0:
		n = copy(p, w.ready)
		w.ready = w.ready[n:]
	default:
		n, w.err = w.Conn.Read(p[:min(len(p), w.left)])
		w.left -= n
	}
	if w.err != nil {
		w.end(w.err)
	}
	return n, w.err
}

// next begins a packet.
func (w *wire) next() error {
	head := make([]byte, headSize)
	if _, err := io.ReadFull(w.Conn, head); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head)
	if size < headSize || size > mostPacket {
		return fmt.Errorf("a packet of %d bytes: is another service behind this address", size)
	}
	w.ready, w.left = head, int(size)-headSize
	program, procedure, kind, status := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[12:]), binary.BigEndian.Uint32(head[16:]), binary.BigEndian.Uint32(head[24:])
	if kind == typeStream && status == statusError {
		return w.streamEnded()
	}
	shape, asked := shapes[procedure]
	if kind == typeStream && w.left == 0 { // the end of one
		return nil
	}
	if program != programRemote || kind != typeReply { // which the SDK would take for an answer all the same
		return fmt.Errorf("a packet of kind %d of program %#x: nobody asked for it", kind, program)
	}
	if status == statusError {
		shape = problem
	}
	body := make([]byte, w.left)
	if _, err := io.ReadFull(w.Conn, body); err != nil {
		return err
	}
	if _, ok := walk(shape, body); !ok || !asked {
		return fmt.Errorf("an answer of %d bytes to procedure %d says that it has more, or was not asked for", size, procedure)
	}
	w.ready, w.left = append(w.ready, body...), 0
	return nil
}

// streamEnded reads why the daemon ended a stream. Nobody else hears of it: the SDK waits for ever where its own side of the stream had
// ended before.
func (w *wire) streamEnded() error {
	body := make([]byte, w.left)
	if _, err := io.ReadFull(w.Conn, body); err != nil {
		return err
	}
	e := libvirt.Error{Code: uint32(libvirt.ErrInternalError), Message: "the daemon ended the stream"}
	if rest, ok := skip(body, 12); ok { // code, domain, and that there is a text
		if end, ok := skipText(rest); ok && len(rest)-len(end) > 4 {
			e.Code, e.Message = binary.BigEndian.Uint32(body), strings.TrimRight(string(rest[4:len(rest)-len(end)]), "\x00")
		}
	}
	select {
	case w.broken <- e:
	default:
	}
	return errStream
}

// walk returns what comes after something of a shape, and reports whether all of it was there.
func walk(shape string, body []byte) (rest []byte, ok bool) {
	for i := 0; i < len(shape); i++ {
		switch shape[i] {
		case 'u':
			body, ok = skip(body, 4)
		case 'i':
			body, ok = skip(body, 16)
		case 's':
			body, ok = skipText(body)
		case '[':
			element := shape[i+1 : i+closing(shape[i:])]
			body, ok = walkAll(element, body)
			i += len(element) + 1
		}
		if !ok {
			return nil, false
		}
	}
	return body, true
}

// walkAll walks a list: how many there are, then each. None takes less than four bytes.
func walkAll(element string, body []byte) ([]byte, bool) {
	if len(body) < 4 {
		return nil, false
	}
	n, ok := binary.BigEndian.Uint32(body), true
	for body = body[4:]; n > 0 && ok; n-- {
		body, ok = walk(element, body)
	}
	return body, ok
}

// closing returns where the list ends that a shape begins with.
func closing(shape string) int {
	open := 0
	for i, c := range shape {
		switch c {
		case '[':
			open++
		case ']':
			if open--; open == 0 {
				return i
			}
		}
	}
	return len(shape)
}

func skip(body []byte, n int) ([]byte, bool) {
	if len(body) < n {
		return nil, false
	}
	return body[n:], true
}

// skipText skips a text: its length, then it, filled up to four bytes.
func skipText(body []byte) ([]byte, bool) {
	if len(body) < 4 {
		return nil, false
	}
	n := (uint64(binary.BigEndian.Uint32(body)) + 3) &^ 3
	if n > uint64(len(body)-4) {
		return nil, false
	}
	return body[4+n:], true
}
