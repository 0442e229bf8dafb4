// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// find is an instance, or what is left of one, that no Machine owns.
type find struct {
	account string
	horizon time.Duration
	in      provider.Instance
	why     string
	shared  bool // another instance has the same tag: a Machine's, or one that is judged by itself, as a Node may run on it
	former  bool // a Machine is there, and says that the attempt which left it is over
	foreign bool // without our creator's tag, or what a Machine may run on or have taken over: only ever reported
}

func (f find) key() string {
	id := cmp.Or(f.in.ID, f.in.ProviderID)
	if f.in.UID == "" {
		return machine.ForeignKey(f.account, id)
	}
	return machine.SightingKey(f.account, id)
}

// reason is that of the Event which tells of f.
func (f find) reason() string {
	if f.in.UID == "" {
		return "ForeignInstance"
	}
	return "OrphanedInstance"
}

func (f find) String() string {
	kind := "instance"
	if f.in.Child {
		kind = "leftover"
	}
	return fmt.Sprintf("%s %s (%s) in %s", kind, cmp.Or(f.in.ID, f.in.ProviderID), f.in.Name, f.account)
}

// fate says what becomes of a find that was first seen at since.
func (f find) fate(since time.Time) string {
	if f.foreign {
		return f.why + "; it is left alone"
	}
	return fmt.Sprintf("%s; removed after %s if that is still so", f.why, machine.Stamp(since.Add(f.horizon)))
}

// owners are the Machines, the instances that they record, and those that an account shows.
type owners struct {
	byUID    map[types.UID]*machine.Machine
	recorded map[machine.InstanceID]bool
	listed   map[machine.InstanceID]bool
	records  *machine.Records
	unread   *machine.Machine // one of which nobody knows whose instance it took over, if there is such a Machine
}

func ownersIn(s snapshot.Snapshot) owners {
	o := owners{byUID: map[types.UID]*machine.Machine{}, recorded: map[machine.InstanceID]bool{}, listed: listed(s), records: s.Records, unread: unread(s)}
	for _, m := range s.Machines { // what carries the UID of nobody who is there is of who took it over
		if uid := machine.InstanceUID(m); o.byUID[uid] == nil {
			o.byUID[uid] = m
		}
	}
	for _, m := range s.Machines {
		o.byUID[m.UID] = m
		if id := machine.ProviderID(m); id != "" {
			o.recorded[machine.InstanceOf(id)] = true
		}
	}
	return o
}

// unread returns a Machine whose intent, with the UID in the tag of what it took over, nobody can read, as it is another version's or spoilt;
// nil if there is none. Of one whose instance is shown with its own UID the tag is known.
func unread(s snapshot.Snapshot) *machine.Machine {
	var tags map[machine.InstanceID]types.UID
	for _, m := range s.Machines {
		if _, err := s.Records.Intent(m); err == nil {
			continue
		}
		if tags == nil {
			tags = tagsIn(s)
		}
		if id := machine.ProviderID(m); id == "" || tags[machine.InstanceOf(id)] != m.UID {
			return m
		}
	}
	return nil
}

// tagsIn returns the UID in the tag of each instance that an account shows.
func tagsIn(s snapshot.Snapshot) map[machine.InstanceID]types.UID {
	tags := map[machine.InstanceID]types.UID{}
	for _, account := range s.Accounts {
		for _, in := range account.Instances {
			if in.ProviderID != "" && !in.Child {
				tags[machine.InstanceOf(in.ProviderID)] = in.UID
			}
		}
	}
	return tags
}

// listed returns all instances that an account shows; what is left of one names none.
func listed(s snapshot.Snapshot) map[machine.InstanceID]bool {
	ids := map[machine.InstanceID]bool{}
	for _, account := range s.Accounts {
		for _, in := range account.Instances {
			if in.ProviderID != "" {
				ids[machine.InstanceOf(in.ProviderID)] = true
			}
		}
	}
	return ids
}

// findsIn returns the finds in every account that could be listed, in a fixed order.
func findsIn(s snapshot.Snapshot, o owners) []find {
	var all []find
	for _, key := range slices.Sorted(maps.Keys(s.Accounts)) {
		account := s.Accounts[key]
		if account.Err != nil {
			continue
		}
		kept, instances := map[types.UID]bool{}, map[types.UID]int{}
		for _, in := range account.Instances {
			kept[in.UID] = kept[in.UID] || o.owns(key, in) == ""
			if !in.Child {
				instances[in.UID]++
			}
		}
		for _, in := range account.Instances {
			why := o.owns(key, in)
			if why == "" || in.Going() {
				continue
			}
			others := instances[in.UID]
			if !in.Child {
				others--
			}
			doubt := o.doubt(in)
			all = append(all, find{account: key, horizon: account.Horizon, in: in, why: why + doubt, shared: kept[in.UID] || others > 0, former: o.former(in), foreign: in.UID == "" || doubt != ""})
		}
	}
	slices.SortStableFunc(all, func(a, b find) int { return cmp.Compare(a.key(), b.key()) })
	return all
}

// doubt says why in is left alone although no Machine owns it, as the rest of the sentence that says so; empty: it is not.
func (o owners) doubt(in provider.Instance) string {
	switch {
	case o.unread != nil && in.UID != "" && o.byUID[in.UID] == nil:
		return fmt.Sprintf(", but nobody can read the intent of machine %s, which may have taken it over", o.unread.Name)
	case o.alone(in):
		return ", which is in no list"
	case o.leftBehind(in):
		return " since somebody changed its spec.providerID, and recorded this one before"
	}
	return ""
}

// owns says why no Machine owns in, which account shows; empty: one does. A Machine that has recorded no instance yet may be about to
// record this one, or to go on with what is left.
func (o owners) owns(account string, in provider.Instance) string {
	m := o.byUID[in.UID]
	switch {
	case in.ProviderID != "" && o.recorded[machine.InstanceOf(in.ProviderID)]:
		return ""
	case in.UID == "":
		return cmp.Or(in.Message, "it carries no machine's tag")
	case m == nil:
		return fmt.Sprintf("there is no machine with UID %s", in.UID)
	case in.ProviderID != "" && machine.ProviderID(m) != "" && !in.Sole:
		return fmt.Sprintf("machine %s records %s", m.Name, machine.ProviderID(m))
	case in.Child && !in.Sole && o.leftBy(account, m):
		return fmt.Sprintf("machine %s has its instance in another region", m.Name)
	case o.former(in):
		return fmt.Sprintf("an attempt for machine %s that is over left it", m.Name)
	}
	return ""
}

// former reports whether in was left by an attempt before its Machine's latest, as by one whose answer was lost: nobody knew of it when the
// next one began, which makes its own. Where something runs on it that is no leftover; nor is by its token what a Machine took over, as the
// attempts were another's.
func (o owners) former(in provider.Instance) bool {
	m := o.byUID[in.UID]
	if m == nil || in.UID != m.UID || !in.Child || in.Sole || in.Token == "" {
		return false
	}
	i, err := o.records.Intent(m)
	return err == nil && i.Own(m) && i.Token != in.Token
}

// leftBy reports whether what account shows of m was left by an attempt there before m's spec was edited: its instance was made in another
// region since, and is on record. Two keys of one region may lead to the same account of the cloud, where it may be m's own.
func (o owners) leftBy(account string, m *machine.Machine) bool {
	i, err := o.records.Intent(m)
	return err == nil && i.Made(m) && machine.ProviderID(m) != "" && machine.OtherRegion(account, i.Account)
}

// alone reports whether in may be what its Machine runs on, though the Machine records another: that one is in no list, as
// when a host, or a whole cloud, was restored and its ids are new.
func (o owners) alone(in provider.Instance) bool {
	m := o.byUID[in.UID]
	return m != nil && !in.Child && !o.listed[machine.InstanceOf(machine.ProviderID(m))]
}

// leftBehind reports whether in was its Machine's before people led spec.providerID to another: they may need what is on it.
func (o owners) leftBehind(in provider.Instance) bool {
	m := o.byUID[in.UID]
	if m == nil {
		return false
	}
	i, err := o.records.Intent(m)
	return err == nil && i.LeftBehind(m, in.ID, in.ProviderID, in.UID)
}

// ripe returns the finds of which two sightings, a Horizon apart, are on record, and that are older than that.
func (w sweep) ripe() []find {
	var all []find
	for _, f := range w.finds {
		if !f.foreign && w.believed(f.key(), f.in.Created, f.horizon) {
			all = append(all, f)
		}
	}
	return all
}

// believed reports whether two sightings of what is called key, a horizon apart, are on record, and that it is older than that. How old
// it is nobody knows where a clock that is ahead made it: then the sightings tell.
func (w sweep) believed(key string, created time.Time, horizon time.Duration) bool {
	since, known := w.state.Sightings[key]
	old := w.Now.After(created.Add(horizon)) || machine.TooFar(created, w.Now, 0)
	return known && old && !w.Now.Before(since.Add(horizon))
}

// held returns what must not be removed, because there are too many finds for accidents: more than three and more
// than a tenth of all instances, not counting what a person has confirmed. A lost or restored set of Machines, or a
// cloned cluster, looks like that; what former attempts of Machines left, which are there, does not.
func (w sweep) held() (all map[string]bool, why string) {
	things, seen, held := map[string]thing{}, map[thing]bool{}, map[thing]bool{}
	for _, f := range w.finds {
		if !f.foreign && !f.former {
			things[f.key()] = w.thing(f.account, f.in)
		}
	}
	for account, a := range w.Accounts {
		for _, in := range slices.DeleteFunc(slices.Clone(a.Instances), func(in provider.Instance) bool { return anothers(w.Snapshot, in) }) {
			if in.UID != "" {
				seen[w.thing(account, in)] = true
			}
		}
	}
	all, latest := w.unconfirmed(slices.Collect(maps.Keys(things)))
	for key := range all {
		held[things[key]] = true
	}
	listed := len(seen)
	if len(held) <= max(3, listed/10) {
		return nil, ""
	}
	return all, fmt.Sprintf("%d of %d instances have no owner: nothing is removed %s", len(held), listed, untilConfirmed(latest))
}

// thing is an instance, or what is left of one, in one of the cloud's accounts, however many Secrets lead there; in the account of a key where
// the cloud does not tell.
type thing struct{ owner, id string }

func (w sweep) thing(account string, in provider.Instance) thing {
	return thing{cmp.Or(w.Accounts[account].Owner, account), cmp.Or(in.ID, in.ProviderID)}
}

// unconfirmed returns which of what is called keys no person has confirmed, and when the last of it was first seen.
func (w sweep) unconfirmed(keys []string) (held map[string]bool, latest time.Time) {
	confirmed, err := time.Parse(time.RFC3339, w.object().Annotations[annotationConfirmed])
	held = map[string]bool{}
	for _, key := range keys {
		since, known := w.state.Sightings[key]
		if !known {
			since = metav1.NewTime(w.Now.Truncate(time.Second))
		}
		if err == nil && !since.After(confirmed) {
			continue
		}
		held[key] = true
		if since.After(latest) {
			latest = since.Time
		}
	}
	return held, latest
}

// untilConfirmed says what a person does to let go what was seen until latest.
func untilConfirmed(latest time.Time) string {
	return fmt.Sprintf("until annotation %s of configmap %s is %s or later", annotationConfirmed, machine.ConfigMapSweep, machine.Stamp(latest))
}

// readyNode returns the name of a Node on the instance that is Ready, or was a moment ago: then it is in use, whatever the records say. A Node may still
// name its instance as it was called before, and its Machine may be gone: then the Machine's name tells.
func (w sweep) readyNode(f find) string {
	if f.in.ProviderID == "" {
		return ""
	}
	owners := w.ownersOf(f) // thousands are compared with thousands
	for _, n := range w.Nodes {
		former := slices.Contains(owners, n.Annotations[machine.AnnotationMachine]) && !w.owners.listed[machine.InstanceOf(n.Spec.ProviderID)]
		on := former || machine.RunsOn(f.in.ProviderID, f.in.Addresses, n)
		if on && machine.NodeReady(n) {
			return n.Name
		}
		if on && machine.NodeMayRestart(n, w.Now) {
			return n.Name + " (which may be restarting)"
		}
	}
	return ""
}

// ownersOf returns which Machines f may have been made for, as namespace/name: where several namespaces have credentials for one of the
// cloud's accounts, each shows what is in it.
func (w sweep) ownersOf(f find) []string {
	all := []string{w.known[f.account].Namespace + "/" + f.in.Name}
	for _, key := range slices.Sorted(maps.Keys(w.known)) {
		if a := w.known[key]; toldAlike(w.Accounts[f.account].Owner, a.Owner) && !slices.Contains(all, a.Namespace+"/"+f.in.Name) {
			all = append(all, a.Namespace+"/"+f.in.Name)
		}
	}
	return all
}

// made returns how many of an account's instances were made for a Machine, with what is left of such: the installer's, for
// instance, are there as long as the cluster is.
func made(all []provider.Instance) (n int) {
	for _, in := range all {
		if in.UID != "" {
			n++
		}
	}
	return n
}

// of returns the sightings in one account.
func of(sightings map[string]metav1.Time, account string) map[string]metav1.Time {
	in := map[string]metav1.Time{}
	for key, at := range sightings {
		if strings.HasPrefix(key, machine.SightingKey(account, "")) || strings.HasPrefix(key, machine.ForeignKey(account, "")) {
			in[key] = at
		}
	}
	return in
}
