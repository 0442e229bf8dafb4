// SPDX-License-Identifier: Apache-2.0

package held

import (
	"net"
	"testing"
)

// Two functions at one address would be one function, silently: the second cannot listen, and the first answers for it.
func TestHeldAddressesDiffer(t *testing.T) {
	addresses, held, err := Addresses(500)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, a := range addresses {
		t.Cleanup(func() { _ = held[i].Close() })
		if seen[a] {
			t.Fatalf("%s is there twice", a)
		}
		seen[a] = true
	}
}

// A function that was killed listens at its address again: nobody else was given that meanwhile.
func TestHeldAddressIsOfWhoeverAsksForIt(t *testing.T) {
	addresses, held, err := Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held[0].Close() })
	for range 2 {
		l, err := net.Listen("tcp", addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Close(), l.Close()
	}
	if c, err := net.Dial("tcp", addresses[0]); err == nil {
		t.Errorf("somebody listens at %s", c.RemoteAddr())
	}
	for range 500 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if l.Addr().String() == addresses[0] {
			t.Fatalf("%s was given to somebody else", addresses[0])
		}
	}
}
