// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// number is an integer of an answer. Engines write some as numbers, and some as text.
type number int64

// UnmarshalJSON implements [json.Unmarshaler].
func (n *number) UnmarshalJSON(b []byte) error {
	text := string(bytes.Trim(b, `"`))
	if text == "null" {
		return nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q is no number", text)
	}
	*n = number(v)
	return nil
}

// truth is a boolean of an answer, which engines write as text too.
type truth bool

// UnmarshalJSON implements [json.Unmarshaler].
func (t *truth) UnmarshalJSON(b []byte) error {
	switch text := string(bytes.Trim(b, `"`)); text {
	case "true":
		*t = true
	case "false", "null":
		*t = false
	default:
		return fmt.Errorf("%.40q is neither true nor false", text)
	}
	return nil
}

// reference names a thing of the engine.
type reference struct {
	ID string `json:"id,omitempty"`
}

// instance is what the engine tells of a virtual machine.
type instance struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Comment      string    `json:"comment"`
	Status       string    `json:"status"`
	StatusDetail string    `json:"status_detail"`
	StopReason   string    `json:"stop_reason"`
	Created      number    `json:"creation_time"` // milliseconds
	Cluster      reference `json:"cluster"`
	InstanceType reference `json:"instance_type"`
	Protected    truth     `json:"delete_protected"`
	Tags         struct {
		All []named `json:"tag"`
	} `json:"tags"`
	Cards struct {
		All []card `json:"nic"`
	} `json:"nics"`
	Reported struct {
		All []device `json:"reported_device"`
	} `json:"reported_devices"`

	Mark mark `json:"-"` // of the comment; empty if there is none
}

func (i instance) id() string { return i.ID }

// card is a network card.
type card struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Profile reference `json:"vnic_profile"`
	MAC     address   `json:"mac"`
}

func (c card) id() string { return c.ID }

type address struct {
	Address string `json:"address"`
}

// device is a network interface as the guest reports it.
type device struct {
	Name string  `json:"name"`
	MAC  address `json:"mac"`
	IPs  struct {
		All []address `json:"ip"`
	} `json:"ips"`
}

// attachment is a disk as it is attached to an instance, or a template.
type attachment struct {
	ID       string `json:"id"` // which is the disk's
	Bootable truth  `json:"bootable"`
	Disk     disk   `json:"disk"`
}

func (a attachment) id() string { return a.ID }

// disk is one disk. What is of format raw and storage type image is no other kind of disk.
type disk struct {
	ID          string `json:"id"`
	Alias       string `json:"alias"`
	Description string `json:"description"`
	Status      string `json:"status"` // ok, locked, illegal
	Size        number `json:"provisioned_size"`
	Shareable   truth  `json:"shareable"`
}

func (k disk) id() string { return k.ID }

// mark returns the mark that stands in the description. A disk that people copy has it too, and another id: it is nobody's.
func (k disk) mark() mark {
	m := k.described()
	if m.ID != k.ID {
		return mark{}
	}
	return m
}

// described returns the mark in the description, whosever disk it was made for.
func (k disk) described() mark {
	var m mark
	if json.Unmarshal([]byte(k.Description), &m) != nil {
		return mark{}
	}
	return m
}

// named is anything of which only id and name count.
type named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func (n named) id() string { return n.ID }

// processors are a topology.
type processors struct {
	Topology struct {
		Sockets number `json:"sockets"`
		Cores   number `json:"cores"`
		Threads number `json:"threads"`
	} `json:"topology"`
}

func (p processors) count() int64 {
	return int64(max(1, p.Topology.Sockets)) * int64(max(1, p.Topology.Cores)) * int64(max(1, p.Topology.Threads))
}

// kind is an instance type.
type kind struct {
	ID     string     `json:"id"`
	Memory number     `json:"memory"`
	CPU    processors `json:"cpu"`
}

// template is what instances are made of. Its versions have one name.
type template struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Status  string    `json:"status"`
	Cluster reference `json:"cluster"`
	Version struct {
		Number number `json:"version_number"`
	} `json:"version"`
}

func (t template) id() string { return t.ID }

// host is what instances run on.
type host struct {
	ID      string    `json:"id"`
	Cluster reference `json:"cluster"`
}

func (h host) id() string { return h.ID }
