// SPDX-License-Identifier: Apache-2.0

package libvirtd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
)

var errShort = errors.New("the message is shorter than what it should hold")

// encode writes a value as XDR does (RFC 4506), as far as libvirt's protocol needs it.
func encode(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			b = encode(b, v.Field(i))
		}
	case reflect.String:
		b = opaque(b, []byte(v.String()))
	case reflect.Slice:
		b = binary.BigEndian.AppendUint32(b, uint32(v.Len())) // of a test
		for i := range v.Len() {
			b = encode(b, v.Index(i))
		}
	case reflect.Array: // of bytes
		for i := range v.Len() {
			b = append(b, byte(v.Index(i).Uint()))
		}
	case reflect.Int64:
		b = binary.BigEndian.AppendUint64(b, uint64(v.Int()))
	case reflect.Uint64:
		b = binary.BigEndian.AppendUint64(b, v.Uint())
	case reflect.Int32, reflect.Int8:
		b = binary.BigEndian.AppendUint32(b, uint32(v.Int())) //nolint:gosec // as they stand on the wire
	case reflect.Uint32, reflect.Uint8:
		b = binary.BigEndian.AppendUint32(b, uint32(v.Uint()))
	default:
		panic(fmt.Sprintf("XDR of %s", v.Type()))
	}
	return b
}

func opaque(b, text []byte) []byte {
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...) // of a test
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// decode reads a value, and returns what comes after it.
func decode(b []byte, v reflect.Value) ([]byte, error) {
	var err error
	switch v.Kind() {
	case reflect.Struct:
		for i := 0; i < v.NumField() && err == nil; i++ {
			b, err = decode(b, v.Field(i))
		}
		return b, err
	case reflect.String:
		n, rest, err := count(b)
		if err != nil || len(rest) < (n+3)&^3 {
			return nil, errShort
		}
		v.SetString(string(rest[:n]))
		return rest[(n+3)&^3:], nil
	case reflect.Slice:
		n, rest, err := count(b)
		for ; n > 0 && err == nil; n-- {
			e := reflect.New(v.Type().Elem()).Elem()
			rest, err = decode(rest, e)
			v.Set(reflect.Append(v, e))
		}
		return rest, err
	case reflect.Array:
		if len(b) < v.Len() {
			return nil, errShort
		}
		reflect.Copy(v, reflect.ValueOf(b[:v.Len()]))
		return b[v.Len():], nil
	case reflect.Int64, reflect.Uint64:
		return number(b, v, 8)
	case reflect.Int32, reflect.Uint32:
		return number(b, v, 4)
	}
	panic(fmt.Sprintf("XDR of %s", v.Type()))
}

func count(b []byte) (int, []byte, error) {
	if len(b) < 4 {
		return 0, nil, errShort
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)) {
		return 0, nil, errShort
	}
	return int(n), b[4:], nil
}

func number(b []byte, v reflect.Value, size int) ([]byte, error) {
	if len(b) < size {
		return nil, errShort
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if size == 8 {
		n = binary.BigEndian.Uint64(b)
	}
	if v.CanInt() {
		if size == 4 {
			n = uint64(int64(int32(n))) //nolint:gosec // as it stands on the wire
		}
		v.SetInt(int64(n)) //nolint:gosec // as it stands on the wire
	} else {
		v.SetUint(n)
	}
	return b[size:], nil
}
