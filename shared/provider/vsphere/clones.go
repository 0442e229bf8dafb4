// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// clone is what is known of an instance.
type clone struct {
	Ref          reference
	Name         string
	UUID         string // of the BIOS: the instance's id
	InstanceUUID string // the Machine's UID; a copy has another, because no two in a vCenter have the same
	Template     bool
	Version      string // of the settings: a change of them names it
	Created      time.Time
	Power        types.VirtualMachinePowerState
	Connection   types.VirtualMachineConnectionState
	Guest        []types.GuestNicInfo
	Mark         mark
	Configured   string // how the guest learns its addresses, once sizes and names are set
	Launched     *launched
	Tags         []string // that the driver attached, by id
	Customizing  string
	Unreadable   []string // settings of ours that are something else than what the driver writes
	Withheld     string   // the fault that the vCenter has in place of its id
}

// details are the properties that a clone is made of.
var details = []string{
	"name", "config.uuid", "config.instanceUuid", "config.changeVersion", "config.createDate", "runtime.powerState", "runtime.connectionState", "guest.net",
	"config.template", "config.tools.pendingCustomization", keyed(keyMark), keyed(keyConfigured), keyed(keyLaunched), keyed(keyTags),
}

// read makes a clone of properties; those that the vCenter left out stay empty. So do settings that cannot be read: whoever
// may write those of one virtual machine must not hide all others.
func read(o types.ObjectContent) clone {
	m := clone{Ref: o.Obj}
	for _, p := range o.PropSet {
		switch v := p.Val.(type) {
		case string:
			m.text(p.Name, v)
		case time.Time:
			m.Created = v
		case bool:
			m.Template = v
		case types.VirtualMachinePowerState:
			m.Power = v
		case types.VirtualMachineConnectionState:
			m.Connection = v
		case types.ArrayOfGuestNicInfo:
			m.Guest = v.GuestNicInfo
		case types.OptionValue:
			m.note(p.Name, fmt.Sprint(v.Value))
		}
	}
	for _, p := range o.MissingSet {
		if p.Path == "config.uuid" {
			m.Withheld = name(p.Fault.Fault)
		}
	}
	return m
}

func (m *clone) text(property, value string) {
	switch property {
	case "name":
		m.Name = value
	case "config.uuid":
		m.UUID = strings.ToLower(value)
	case "config.instanceUuid":
		m.InstanceUUID = strings.ToLower(value)
	case "config.changeVersion":
		m.Version = value
	case "config.tools.pendingCustomization":
		m.Customizing = value
	}
}

func (m *clone) note(property, value string) {
	switch {
	case value == "": // as good as taken away
	case property == keyed(keyMark):
		m.Mark = said[mark](m, keyMark, value)
	case property == keyed(keyLaunched):
		m.Launched = new(said[launched](m, keyLaunched, value))
	case property == keyed(keyTags):
		m.Tags = said[[]string](m, keyTags, value)
	case property == keyed(keyConfigured):
		m.Configured = value
	}
}

// said returns what a setting of m says, or nothing if it cannot be read, which m notes.
func said[T any](m *clone, key, value string) T {
	var it, nothing T
	if err := json.Unmarshal([]byte(value), &it); err != nil {
		m.Unreadable = append(m.Unreadable, key)
		return nothing
	}
	return it
}

// blind returns an error if the vCenter, which found m by its id, tells nothing of its settings now: its files are out of reach, or
// they are withheld from the user. It is there, whosever it is.
func (m clone) blind(of string) error {
	switch {
	case m.UUID != "":
		return nil
	case codes[m.Withheld] == provider.Denied: // not with that code: who is denied one look is denied all, and others may be looked at
		return provider.Errorf(provider.Unknown, "%s of %s: the vCenter does not tell what it is (%s): let the user read it", m.Ref.Value, of, m.Withheld)
	}
	return provider.Errorf(provider.Unknown, "%s of %s is %s, and the vCenter does not tell what it is: mend its host or datastore, or remove it from the vCenter's inventory",
		m.Ref.Value, of, cmp.Or(string(m.Connection), m.Withheld, "there"))
}

// pageSize is how many instances one answer tells of.
const pageSize = 500

// retrieve reads properties, page by page. A page that does not come is an error.
func retrieve(ctx context.Context, c *vim25.Client, of types.PropertyFilterSpec) ([]types.ObjectContent, error) {
	return pages(ctx, c, of, pageSize)
}

func pages(ctx context.Context, c *vim25.Client, of types.PropertyFilterSpec, size int32) ([]types.ObjectContent, error) {
	collector := c.ServiceContent.PropertyCollector
	req := types.RetrievePropertiesEx{This: collector, SpecSet: []types.PropertyFilterSpec{of}}
	req.Options.MaxObjects = size
	first, err := methods.RetrievePropertiesEx(ctx, c, &req)
	if err != nil {
		return nil, err
	}
	var all []types.ObjectContent
	for page := first.Returnval; page != nil; {
		all = append(all, page.Objects...)
		if page.Token == "" {
			break
		}
		next, err := methods.ContinueRetrievePropertiesEx(ctx, c, &types.ContinueRetrievePropertiesEx{This: collector, Token: page.Token})
		if err != nil {
			return nil, fmt.Errorf("next page of a list: %w", err)
		}
		page = &next.Returnval
	}
	return all, nil
}

// of asks for properties of given instances.
func of(refs []reference, properties ...string) types.PropertyFilterSpec {
	f := types.PropertyFilterSpec{PropSet: []types.PropertySpec{{Type: "VirtualMachine", PathSet: properties}}}
	for _, r := range refs {
		f.ObjectSet = append(f.ObjectSet, types.ObjectSpec{Obj: r})
	}
	return f
}

// tidying is what a list keeps of its time to take its view away: also of one that takes too long none may stay.
const tidying = time.Second

// early returns a context that leaves time for that.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, end.Add(-tidying))
	}
	return context.WithCancel(ctx)
}

// everywhere reads properties of every virtual machine that the account may see.
func everywhere(ctx context.Context, c *vim25.Client, properties ...string) ([]types.ObjectContent, error) {
	return within(ctx, c, c.ServiceContent.RootFolder, properties...)
}

// within reads them of those in a folder or a cluster.
func within(ctx context.Context, c *vim25.Client, container reference, properties ...string) ([]types.ObjectContent, error) {
	view, err := methods.CreateContainerView(ctx, c, &types.CreateContainerView{
		This: *c.ServiceContent.ViewManager, Container: container, Type: []string{"VirtualMachine"}, Recursive: true,
	})
	if err != nil {
		return nil, err
	}
	f := of([]reference{view.Returnval}, properties...)
	f.ObjectSet[0].Skip = types.NewBool(true)
	f.ObjectSet[0].SelectSet = []types.BaseSelectionSpec{&types.TraversalSpec{Type: "ContainerView", Path: "view"}}
	timed, cancel := early(ctx)
	defer cancel()
	all, err := retrieve(timed, c, f)
	cut := err != nil && timed.Err() != nil
	if _, left := methods.DestroyView(ctx, c, &types.DestroyView{This: view.Returnval}); err == nil && left != nil {
		err = left // a view that stays costs the vCenter memory until the session ends
	}
	if cut { // what ends before the time that was given was answered: nobody answered this (RELIABILITY G6)
		<-ctx.Done()
	}
	return all, err
}

// marked returns every instance with the cluster's mark: first the marks of all, which are short, then the details of
// those that are ours.
func (d *driver) marked(ctx context.Context, c *vim25.Client) ([]clone, error) {
	marks, err := everywhere(ctx, c, keyed(keyMark))
	if err != nil {
		return nil, err
	}
	var ours []reference
	for _, o := range marks {
		if m := read(o); m.Mark.Cluster == d.account.ClusterID {
			ours = append(ours, m.Ref)
		}
	}
	var all []clone
	for some := range slices.Chunk(ours, pageSize) {
		found, err := remaining(ctx, c, some)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// remaining returns the details of those instances that are still there. To look at all again when one went would not end while a
// large set is scaled down.
func remaining(ctx context.Context, c *vim25.Client, refs []reference) ([]clone, error) {
	for {
		all, err := known(ctx, c, refs)
		fault, gone := faultOf(err).(*types.ManagedObjectNotFound)
		if !gone {
			return all, err
		}
		there := slices.DeleteFunc(slices.Clone(refs), func(r reference) bool { return r.Value == fault.Obj.Value })
		if len(there) == len(refs) { // it is something else
			return nil, err
		}
		refs = there
	}
}

// known returns the details of instances. One that is gone makes the answer ManagedObjectNotFound.
func known(ctx context.Context, c *vim25.Client, refs []reference) ([]clone, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	found, err := retrieve(ctx, c, of(refs, details...))
	if err != nil {
		return nil, err
	}
	if len(found) != len(refs) {
		return nil, provider.Errorf(provider.Unknown, "the vCenter told of %d instances, asked for %d", len(found), len(refs))
	}
	var all []clone
	for _, o := range found {
		all = append(all, read(o))
	}
	return all, nil
}

var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// named returns the instances that r names: by the Machine's UID, or by an id unless the mark is another Machine's.
func (d *driver) named(ctx context.Context, c *vim25.Client, r provider.Ref) ([]clone, error) {
	refs := map[reference]bool{}
	recorded := strings.ToLower(strings.TrimPrefix(r.ProviderID, scheme))
	for _, q := range []struct {
		uuid     string
		instance bool
	}{{string(r.UID), true}, {r.ID, false}, {recorded, false}} {
		if !uuidPattern.MatchString(q.uuid) {
			continue
		}
		found, err := object.NewSearchIndex(c).FindAllByUuid(ctx, nil, q.uuid, true, &q.instance)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			refs[f.Reference()] = true
		}
	}
	var all []clone
	for _, ref := range slices.SortedFunc(maps.Keys(refs), func(a, b reference) int { return strings.Compare(a.Value, b.Value) }) {
		found, err := known(ctx, c, []reference{ref})
		if name(faultOf(err)) == "ManagedObjectNotFound" {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := found[0].blind(r.Name); err != nil {
			return nil, err
		}
		if d.means(r, found[0]) {
			all = append(all, found[0])
		}
	}
	if slices.ContainsFunc(all, func(m clone) bool { return !m.copied() }) {
		all = slices.DeleteFunc(all, clone.copied)
	}
	return all, nil
}

// copied reports whether m has a mark that was made for another: people, backups and replications copy settings along
// with an instance, and the vCenter gives the copy an instanceUuid of its own. A template made of an instance runs nothing.
func (m clone) copied() bool {
	return m.Mark.Cluster != "" && (m.InstanceUUID != m.Mark.UID || m.Template)
}

// means reports whether r names m. What carries no mark was made by another system: it is the Machine's whose UID it
// carries as OpenShift's instances do, or that records its id. What looks like a copy is the Machine's only as long as
// nothing else is, and is never destroyed.
func (d *driver) means(r provider.Ref, m clone) bool {
	recorded := machine.SameID(r.ProviderID, m.providerID())
	switch {
	case r.Attempt && m.Mark.Token != r.Token:
		return false
	case m.Template:
		return false
	case m.Mark.Cluster == "":
		return recorded || r.UID != "" && m.InstanceUUID == string(r.UID)
	case m.Mark.Cluster != d.account.ClusterID:
		return false
	case m.copied():
		return recorded && r.UID != "" && m.Mark.UID == string(r.UID)
	case r.UID == "":
		return recorded || r.ID != "" && r.ID == m.UUID
	}
	return m.Mark.UID == string(r.UID)
}

// ambiguous returns an error if several instances have one id, and not all a mark: replications keep that of the BIOS, and what reads no settings
// leaves out the mark. So where the other is gone, it returns one for what has nothing of the Machine but that id, neither its UID nor the name
// that OpenShift's instances have.
func ambiguous(r provider.Ref, found []clone) error {
	at := map[string]clone{}
	for _, m := range found {
		if other, twice := at[m.UUID]; twice && (m.Mark.Cluster == "" || other.Mark.Cluster == "") {
			return provider.Errorf(provider.Exhausted, "%s: %s and %s have the id that the Machine records, %s, and not both a mark: remove the copy from the vCenter's inventory, or set another uuid for it",
				r.Name, other.Ref.Value, m.Ref.Value, m.UUID)
		}
		at[m.UUID] = m
		if m.Mark.Cluster == "" && m.InstanceUUID != string(r.UID) && m.Name != r.Name {
			return provider.Errorf(provider.Exhausted, "%s: %s (%s) has the id that the Machine records, %s, but neither a mark, nor the Machine's UID or name: if it is a copy remove it from the vCenter's inventory, or set another uuid for it, or else call it %s",
				r.Name, m.Ref.Value, m.Name, m.UUID, r.Name)
		}
	}
	return nil
}
