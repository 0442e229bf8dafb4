// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/xml"
	"time"

	"github.com/digitalocean/go-libvirt"
	"k8s.io/apimachinery/pkg/types"
)

// What the driver writes into a domain's metadata. Each is an element in a namespace of its own, which the daemon replaces as a whole:
// whoever writes one takes no other away.
const (
	spaceMark     = "https://github.com/machine-functions/machine-functions/libvirt/mark"     // whose it is; part of the definition
	spaceLaunched = "https://github.com/machine-functions/machine-functions/libvirt/launched" // it has been started
	spaceHeld     = "https://github.com/machine-functions/machine-functions/libvirt/held"     // it is held off
	spaceDeleting = "https://github.com/machine-functions/machine-functions/libvirt/deleting" // it is on its way out
)

// flags are the elements that say no more than that they are there, by their namespaces.
var flags = map[string]string{spaceLaunched: "launched", spaceHeld: "held", spaceDeleting: "deleting"}

// mark says whose a domain is, and what of its spec nothing else tells once it is defined.
type mark struct {
	XMLName   xml.Name  `xml:"https://github.com/machine-functions/machine-functions/libvirt/mark mark"`
	Cluster   string    `xml:"cluster,attr"`
	Of        string    `xml:"clusterUID,attr,omitempty"` // the mark of the one cluster, whatever other has its id
	UID       types.UID `xml:"uid,attr"`
	Token     string    `xml:"token,attr"`
	Namespace string    `xml:"namespace,attr"`
	Name      string    `xml:"name,attr"`
	Stem      string    `xml:"stem,attr"` // of its volumes' names
	Pool      string    `xml:"pool,attr"` // with them
	Host      string    `xml:"host,attr"` // with that
	Hostname  string    `xml:"hostname,attr,omitempty"`
	Network   string    `xml:"network,attr,omitempty"` // where an address is reserved for it
	Autostart bool      `xml:"autostart,attr,omitempty"`
	Created   string    `xml:"created,attr"`
}

// volume returns the name of the domain's volume of a role.
func (m mark) volume(role string) string {
	n := volumeName{Stem: m.Stem, Mark: m.Of, UID: string(m.UID), Token: m.Token, Role: role}
	return n.sealed(m.Cluster, m.Host, m.Pool).String()
}

func (m mark) created() time.Time {
	at, err := time.Parse(time.RFC3339, m.Created)
	if err != nil { // which people edited
		return time.Time{}
	}
	return at
}

// flag writes one element into a domain's lasting definition, which is the one that is read.
func (l *daemon) flag(d libvirt.Domain, space string) error {
	return l.DomainSetMetadata(d, int32(libvirt.DomainMetadataElement), libvirt.OptString{"<" + flags[space] + "/>"},
		libvirt.OptString{"machine-functions-" + flags[space]}, libvirt.OptString{space}, libvirt.DomainAffectConfig)
}

// unflag takes it away.
func (l *daemon) unflag(d libvirt.Domain, space string) error {
	err := l.DomainSetMetadata(d, int32(libvirt.DomainMetadataElement), nil, libvirt.OptString{"machine-functions-" + flags[space]}, libvirt.OptString{space}, libvirt.DomainAffectConfig)
	if is(err, libvirt.ErrNoDomainMetadata) {
		return nil
	}
	return err
}
