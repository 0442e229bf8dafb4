// SPDX-License-Identifier: Apache-2.0

package libvirtd

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"

	"github.com/digitalocean/go-libvirt"
)

// head is that of a packet, after its length.
type head struct{ Program, Version, Procedure, Type, Serial, Status uint32 }

const (
	remote     = 0x20008086
	headSize   = 28
	typeCall   = 0
	typeReply  = 1
	typeStream = 3
	statusOK   = 0
	statusBad  = 1
	statusMore = 2
)

// Fault is what becomes of a call, as a test wants it.
type Fault int

// Faults. The zero Fault is none.
const (
	None       Fault = iota
	Lost             // the call does not come, and the connection ends
	Unanswered       // it is carried out, and the connection ends
	Cut              // it is carried out, and half of the answer comes
	Garbage          // something else answers
	Refused          // the daemon answers with an internal error, and does nothing
	Denied           // it answers that who asks may not, and does nothing
	Hung             // it is not carried out, and nothing comes
)

// numbered is what a Fault of an error's number begins at.
const numbered Fault = 1 << 16

// Number is the fault that the daemon answers with an error of a number, and does nothing.
func Number(n libvirt.ErrorNumber) Fault { return numbered + Fault(n) }

// Strike lets f say what becomes of each call, by the name of its procedure, or do something before it. Nil lets all pass.
func (d *Daemon) Strike(f func(procedure string) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.strike = f
}

func (d *Daemon) fate(procedure string) Fault {
	d.mu.Lock()
	d.calls[procedure]++
	strike := d.strike
	d.mu.Unlock()
	if strike == nil {
		return None
	}
	return strike(procedure)
}

// client is one connection.
type client struct {
	daemon  *Daemon
	conn    net.Conn
	uploads map[uint32]*upload // by serial
}

// upload is a volume that is being written.
type upload struct {
	volume *volume
	data   []byte
}

// serve answers until the connection ends.
func (c *client) serve() {
	defer func() { _ = c.conn.Close() }()
	for {
		size := make([]byte, 4)
		if _, err := io.ReadFull(c.conn, size); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(size)
		if n < headSize || n > 33<<20 {
			return
		}
		packet := make([]byte, n-4)
		if _, err := io.ReadFull(c.conn, packet); err != nil {
			return
		}
		var h head
		body, err := decode(packet, reflect.ValueOf(&h).Elem())
		if err != nil || h.Program != remote || !c.take(h, body) {
			return
		}
	}
}

// take carries out one packet, and reports whether the connection goes on.
func (c *client) take(h head, body []byte) bool {
	if h.Type == typeStream {
		return c.stream(h, body)
	}
	p, known := procedures[h.Procedure]
	if !known {
		return c.refuse(h, libvirt.Error{Code: uint32(libvirt.ErrRPC), Message: "unknown procedure"})
	}
	fate := c.daemon.fate(p.name)
	if fate > numbered {
		return c.refuse(h, libvirt.Error{Code: uint32(fate - numbered), Message: "struck"}) //nolint:gosec // as Number made it
	}
	switch fate {
	case Lost:
		return false
	case Hung:
		return true
	case Refused:
		return c.refuse(h, libvirt.Error{Code: uint32(libvirt.ErrInternalError), Message: "internal error: struck"})
	case Denied:
		return c.refuse(h, libvirt.Error{Code: uint32(libvirt.ErrAccessDenied), Message: "access denied: struck"})
	default: // it is carried out
	}
	ret, err := p.do(c, h, body)
	switch fate {
	case Unanswered:
		return false
	case Garbage:
		_, _ = c.conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\n\r\n<html>"))
		return false
	default: // it is answered
	}
	if err != nil {
		return c.refuse(h, err)
	}
	var b []byte
	if ret != nil {
		b = encode(nil, reflect.ValueOf(ret))
	}
	return c.send(h, typeReply, statusOK, b, fate == Cut)
}

// stream takes a piece of a volume, or its end.
func (c *client) stream(h head, body []byte) bool {
	up := c.uploads[h.Serial]
	if up == nil {
		return true
	}
	switch h.Status {
	case statusMore:
		up.data = append(up.data, body...)
		return true
	case statusBad:
		delete(c.uploads, h.Serial)
		return true
	}
	delete(c.uploads, h.Serial)
	switch fate := c.daemon.fate("StorageVolUpload end"); fate {
	case Lost:
		return false
	case Hung:
		return true
	case None:
		c.daemon.write(up)
	case Refused, Denied:
		e := libvirt.Error{Code: uint32(libvirt.ErrSystemError), Message: "cannot write: No space left on device"}
		return c.send(h, typeStream, statusBad, problem(e), false)
	default:
		c.daemon.write(up)
		return false
	}
	return c.send(h, typeStream, statusOK, nil, false)
}

// refuse answers with an error.
func (c *client) refuse(h head, err error) bool {
	e, ok := errors.AsType[libvirt.Error](err)
	if !ok {
		e = libvirt.Error{Code: uint32(libvirt.ErrInternalError), Message: err.Error()}
	}
	return c.send(h, typeReply, statusBad, problem(e), false)
}

// problem is an error as it stands on the wire: of its many parts the first ones, and nothing for the others.
func problem(e libvirt.Error) []byte {
	type wire struct {
		Code    uint32
		Domain  uint32
		Message []string
		Level   uint32
		Rest    [40]byte // no domain, texts, numbers, network
	}
	return encode(nil, reflect.ValueOf(wire{Code: e.Code, Message: []string{e.Message}, Level: 2}))
}

func (c *client) send(h head, kind, status uint32, body []byte, cut bool) bool {
	h.Type, h.Status = kind, status
	b := binary.BigEndian.AppendUint32(nil, uint32(headSize+len(body))) // of a test
	b = append(encode(b, reflect.ValueOf(h)), body...)
	if cut {
		_, _ = c.conn.Write(b[:len(b)/2])
		return false
	}
	_, err := c.conn.Write(b)
	return err == nil
}
