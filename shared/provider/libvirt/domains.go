// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/xml"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// domain is what is known of one.
type domain struct {
	Ref      libvirt.Domain
	Mark     mark // empty if it carries none, or one that nobody can read
	Noted    bool // that it was launched is written on it
	Launched bool // it is not a creation's any more
	Starting bool // its hypervisor is being started, which may fail yet
	Failed   bool // it is off because that failed
	Held     bool
	Deleting bool
	State    libvirt.DomainState
	Garbled  string // why what it carries cannot be read
}

// domainXML is as much of a domain's definition as is read back.
type domainXML struct {
	Metadata struct {
		Mark     *mark     `xml:"https://github.com/machine-functions/machine-functions/libvirt/mark mark"`
		Launched *struct{} `xml:"https://github.com/machine-functions/machine-functions/libvirt/launched launched"`
		Held     *struct{} `xml:"https://github.com/machine-functions/machine-functions/libvirt/held held"`
		Deleting *struct{} `xml:"https://github.com/machine-functions/machine-functions/libvirt/deleting deleting"`
	} `xml:"metadata"`
}

// together is how many requests are under way on one connection: a daemon stops listening to a client that has five (max_client_requests).
const together = 4

// read returns what is known of a domain, or false if it is gone. Whoever may edit one domain hides no other: what cannot be read is none
// of ours, and is told.
func (l *daemon) read(ref libvirt.Domain) (domain, bool, error) {
	m := domain{Ref: ref}
	text, err := l.DomainGetXMLDesc(ref, libvirt.DomainXMLInactive)
	if is(err, libvirt.ErrNoDomain) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	m.understand(text)
	state, reason, err := l.DomainGetState(ref, 0)
	if is(err, libvirt.ErrNoDomain) {
		return m, false, nil
	}
	m.State = libvirt.DomainState(state)
	m.Starting = m.State == libvirt.DomainPaused && libvirt.DomainPausedReason(reason) == libvirt.DomainPausedStartingUp
	m.Failed = m.State == libvirt.DomainShutoff && libvirt.DomainShutoffReason(reason) == libvirt.DomainShutoffFailed
	m.Launched = m.Noted || m.ran(libvirt.DomainShutoffReason(reason))
	return m, err == nil, err
}

// ran reports whether a domain that is off ran before, as its end says until the daemon is started anew: who defined it once more, as he
// had not seen it, took away that it was launched.
func (m domain) ran(reason libvirt.DomainShutoffReason) bool {
	return m.State == libvirt.DomainShutoff && (reason == libvirt.DomainShutoffShutdown || reason == libvirt.DomainShutoffDestroyed)
}

func (m *domain) understand(text string) {
	var has domainXML
	if err := xml.Unmarshal([]byte(text), &has); err != nil {
		m.Garbled = "what it carries cannot be read: " + err.Error()
		return
	}
	if it := has.Metadata.Mark; it != nil {
		m.Mark = *it
	}
	m.Noted, m.Held, m.Deleting = has.Metadata.Launched != nil, has.Metadata.Held != nil, has.Metadata.Deleting != nil
}

// active reports whether a domain has power, in whatever state.
func (m domain) active() bool {
	return m.State != libvirt.DomainShutoff && m.State != libvirt.DomainCrashed
}

// copied reports whether m has a mark that was made for another: who clones a domain copies what it carries, and the clone has a UUID of
// its own.
func (m domain) copied() bool {
	return m.Mark.Cluster != "" && m.Ref.UUID != uuidOf(m.Mark.UID)
}

// named returns the domains that r names: by the Machine's UID, or by an id unless the mark is another Machine's. One whose id a Machine
// records was complete once, whether or not that was written on it.
func (d *driver) named(l *daemon, r provider.Ref) ([]domain, error) {
	var ids []libvirt.UUID
	if r.UID != "" {
		ids = append(ids, uuidOf(r.UID))
	}
	for _, text := range []string{r.ID, strings.TrimPrefix(r.ProviderID, scheme)} {
		if id, ok := parseUUID(text); ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	var all []domain
	for _, id := range ids {
		ref, err := l.DomainLookupByUUID(id)
		if is(err, libvirt.ErrNoDomain) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m, there, err := l.read(ref)
		if err != nil {
			return nil, err
		}
		if there && d.means(r, m) {
			m.Launched = m.Launched || recorded(r, m)
			all = append(all, m)
		}
	}
	return all, nil
}

// recorded reports whether the Machine that r is of has m's id on record.
func recorded(r provider.Ref, m domain) bool {
	return machine.SameID(r.ProviderID, providerID(m.Ref.UUID))
}

// means reports whether r names m. What carries no mark was made by another system, or somebody took it away: it is the Machine's that
// records its id, or whose UID gives its UUID. What looks like a copy is nobody's.
func (d *driver) means(r provider.Ref, m domain) bool {
	switch {
	case r.Attempt && m.Mark.Token != r.Token:
		return false
	case m.Mark.Cluster == "": // no other Machine's UID gives its UUID
		return recorded(r, m) || r.UID != "" && m.Ref.UUID == uuidOf(r.UID)
	case m.Mark.Cluster != d.account.ClusterID || m.copied():
		return false
	case r.UID == "":
		return recorded(r, m) || r.ID == idOf(m.Ref.UUID)
	}
	return m.Mark.UID == r.UID
}

// marked returns the domains that carry the cluster's mark. One that goes meanwhile is left out.
func (d *driver) marked(l *daemon) ([]domain, error) {
	refs, _, err := l.ConnectListAllDomains(1, 0)
	if err != nil {
		return nil, err
	}
	found := make([]domain, len(refs))
	there := make([]bool, len(refs))
	g := beside.New(together)
	for i, ref := range refs {
		g.Go(func() (err error) {
			found[i], there[i], err = l.read(ref)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var all []domain
	for i, m := range found {
		if there[i] && m.Mark.Cluster == d.account.ClusterID {
			all = append(all, m)
		}
	}
	return all, nil
}

// leftover is a volume whose domain is gone, or has others by now.
type leftover struct {
	Vol  libvirt.StorageVol
	Name volumeName
}

// id names a volume among instances.
func (v leftover) id() string { return "volume/" + v.Vol.Pool + "/" + v.Vol.Name }

func (v leftover) uid() types.UID { return types.UID(v.Name.UID) }

// volumes returns the cluster's volumes of this host in all pools that are active: what is in others nobody can see.
func (d *driver) volumes(l *daemon) (all []leftover, err error) {
	host, err := d.host(l)
	if err != nil {
		return nil, err
	}
	pools, _, err := l.ConnectListAllStoragePools(1, libvirt.ConnectListStoragePoolsActive)
	if err != nil {
		return nil, err
	}
	for _, pool := range pools {
		vols, _, err := l.StoragePoolListAllVolumes(pool, 1, 0)
		if is(err, libvirt.ErrNoStoragePool) || is(err, libvirt.ErrOperationInvalid) { // it is gone, or not active any more
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, vol := range vols {
			if n, named := parseVolume(vol.Name); named && n == n.sealed(d.account.ClusterID, host.Name, pool.Name) {
				all = append(all, leftover{vol, n})
			}
		}
	}
	return all, nil
}
