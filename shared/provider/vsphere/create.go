// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// progress is what the next step needs to know: the task that runs, and what leaves no trace on the instance. If it is
// lost, what it says is done is done again, which changes nothing.
type progress struct {
	Step       string     `json:"step,omitempty"` // what Task does
	Task       *reference `json:"task,omitempty"`
	Template   string     `json:"template,omitempty"` // of which the clone is made
	Customized bool       `json:"customized,omitempty"`
	Tagged     bool       `json:"tagged,omitempty"`
}

// The steps of a creation, in their order.
const (
	stepClone     = "clone"
	stepConfigure = "configure"
	stepCustomize = "customize"
	stepGroup     = "join VM group"
	stepStart     = "power on"
	stepNote      = "note disks"
)

const (
	// patience is how long one call waits for a task: most are done sooner, and then the next step needs no new call.
	patience = 4 * time.Second
	// lookAgain is between two looks at a task, at most.
	lookAgain = time.Second
)

// create makes the next step. What it is follows from the instance itself, so that steps may be lost, repeated, or made
// by several at once: of a clone that two ask for the vCenter makes one, because names are unique in a folder.
func (d *driver) create(ctx context.Context, c *vim25.Client, r provider.Ref, req request) (provider.Instance, error) {
	p, err := provider.ProgressOf[progress](r)
	if err != nil {
		return provider.Instance{}, err
	}
	cards, given, err := d.addresses.give(ctx, d.account, r, req.Spec.Network.Devices)
	if err != nil {
		return provider.Instance{}, err
	}
	if req.Spec.Network.Devices = cards; !given {
		return provider.Incomplete(r, p)
	}
	there := len(r.Progress) > 0
	for again := false; ; again = true {
		done, err := d.settle(ctx, c, r, req, &p)
		if err != nil { // a task that failed is over: the next call begins the step anew
			return provider.Halted(r, p, there, err)
		}
		if !done || again && hurried(ctx) {
			return provider.Incomplete(r, p)
		}
		m, finished, err := d.advance(ctx, c, r, req, &p)
		there = there || m != nil
		switch {
		case err != nil:
			return provider.Halted(r, p, there, err)
		case finished:
			return d.instance(*m), nil
		case p.Step == stepClone: // record the task before anything else: it alone leads to the clone
			return provider.Incomplete(r, p)
		}
	}
}

// advance begins the next step, and reports whether there is none.
func (d *driver) advance(ctx context.Context, c *vim25.Client, r provider.Ref, req request, p *progress) (*clone, bool, error) {
	m, err := d.one(ctx, c, r)
	if err != nil {
		return nil, false, err
	}
	began := *p
	err = d.step(ctx, c, r, req, m, p)
	return m, m != nil && *p == began, err
}

// margin is what a call keeps to answer in time.
const margin = 2 * time.Second

// hurried reports whether too little of the call is left to begin a step.
func hurried(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < margin
}

// settle waits for the task that runs, if there is one, and reports whether it ended.
func (d *driver) settle(ctx context.Context, c *vim25.Client, r provider.Ref, req request, p *progress) (bool, error) {
	if p.Task == nil {
		return true, nil
	}
	info, err := await(ctx, c, *p.Task, patience)
	if err != nil && p.Step == stepClone { // whatever is wrong, the clone is being made: nothing was refused
		return false, provider.Errorf(provider.Unknown, "clone %s: %v", r.Name, d.session.coded(err))
	}
	if err != nil || !ended(info) {
		return false, err
	}
	step := p.Step
	p.Task, p.Step = nil, ""
	switch {
	case info == nil: // vCenters forget tasks; the instance shows what became of it
		return true, nil
	case info.State == types.TaskInfoStateError:
		return true, d.failure(ctx, c, r, req, step, reason(info))
	}
	p.Customized = p.Customized || step == stepCustomize
	return true, nil
}

// reason returns why a task failed, which a vCenter may leave out.
func reason(info *types.TaskInfo) *types.LocalizedMethodFault {
	if info.Error == nil {
		return &types.LocalizedMethodFault{LocalizedMessage: "the vCenter does not say why it failed"}
	}
	return info.Error
}

// failure is what a task that failed means; nothing if somebody else did what it was to do.
func (d *driver) failure(ctx context.Context, c *vim25.Client, r provider.Ref, req request, step string, e *types.LocalizedMethodFault) error {
	switch fault := name(e.Fault); {
	case step == stepClone && fault == "DuplicateName":
		return d.taken(ctx, c, r, req)
	case step == stepStart && fault == "InvalidPowerState", fault == "ConcurrentAccess":
		return nil
	}
	return failed(step+" "+r.Name, e)
}

// ended reports whether a task is over; one that the vCenter has forgotten is.
func ended(info *types.TaskInfo) bool {
	return info == nil || info.State == types.TaskInfoStateSuccess || info.State == types.TaskInfoStateError
}

// taken is a clone whose name exists in the folder: as the Machine's own, made by somebody faster, or as a stranger.
func (d *driver) taken(ctx context.Context, c *vim25.Client, r provider.Ref, req request) error {
	found, err := d.named(ctx, c, r)
	if err != nil || len(found) > 0 {
		return err
	}
	ref, err := object.NewSearchIndex(c).FindChild(ctx, req.Folder, r.Name)
	if err != nil {
		return err
	}
	if ref == nil {
		return provider.Errorf(provider.Unknown, "clone %s: its name is taken by a clone that is being made, or is just gone", r.Name)
	}
	if vm := ref.Reference(); vm.Type == "VirtualMachine" {
		there, err := remaining(ctx, c, []reference{vm})
		if err != nil {
			return err
		}
		if len(there) == 0 || there[0].UUID == "" && there[0].Withheld == "" { // of a clone that is being made a vCenter tells the name alone
			if len(there) > 0 && there[0].Connection != "" && there[0].Connection != types.VirtualMachineConnectionStateConnected { // a stranger, or its own
				return provider.Errorf(provider.Unknown, "clone %s: its name is taken: %w", r.Name, there[0].blind("that name"))
			}
			return provider.Errorf(provider.Unknown, "clone %s: its name is taken by %s, which is being made, or is just gone", r.Name, vm.Value)
		}
	}
	return provider.Errorf(provider.Exhausted, "clone %s: folder %q has a virtual machine of that name (%s) that is not this Machine's: rename or remove it",
		r.Name, req.Spec.Workspace.Folder, ref.Reference().Value)
}

// one returns the Machine's instance, or nil. Two cannot be in one folder; of those in several the first counts, so that
// everybody goes on with the same.
func (d *driver) one(ctx context.Context, c *vim25.Client, r provider.Ref) (*clone, error) {
	found, err := d.named(ctx, c, provider.Ref{UID: r.UID})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// begin notes the task of a step that begins.
func (p *progress) begin(step string, task reference, err error) error {
	if err == nil {
		p.Step, p.Task = step, &task
	}
	return err
}

// step begins what is missing of m, and notes the task in p. Nothing is missing if p stays as it is.
func (d *driver) step(ctx context.Context, c *vim25.Client, r provider.Ref, req request, m *clone, p *progress) error {
	if m == nil {
		task, err := d.clone(ctx, c, r, req)
		if name(faultOf(err)) == "DuplicateName" {
			return d.taken(ctx, c, r, req)
		}
		p.Template = req.Template.Value
		return p.begin(stepClone, task, err)
	}
	on := m.Power == types.VirtualMachinePowerStatePoweredOn
	if began, err := d.prepare(ctx, c, r, req, *m, p); began || err != nil {
		return err
	}
	if req.Group != nil && m.Launched == nil {
		task, err := d.join(ctx, c, req, *m)
		if err != nil || task != nil {
			return p.begin(stepGroup, value(task), err)
		}
	}
	switch {
	case m.Launched != nil:
		return nil
	case on:
		task, err := note(ctx, c, *m)
		return p.begin(stepNote, task, err)
	}
	task, err := object.NewVirtualMachine(c, m.Ref).PowerOn(ctx)
	return p.begin(stepStart, refOf(task), err)
}

// prepare begins what comes before the first start, and reports whether it did.
func (d *driver) prepare(ctx context.Context, c *vim25.Client, r provider.Ref, req request, m clone, p *progress) (bool, error) {
	switch {
	case m.Launched != nil || m.Power == types.VirtualMachinePowerStatePoweredOn:
		return false, nil
	case m.Configured == "":
		task, err := d.configure(ctx, c, r, req, m)
		return true, p.begin(stepConfigure, task, err)
	}
	if !p.Tagged {
		ofCluster, err := d.ofCluster(ctx, c)
		if err != nil {
			return true, err
		}
		if ofCluster != "" || len(req.Spec.TagIDs) > 0 {
			err = d.attach(ctx, c, req.Spec.TagIDs, ofCluster, m.Ref)
			p.Tagged = err == nil
			return true, err
		}
	}
	if !p.Customized && m.Customizing == "" && m.Configured == byCustomization {
		task, err := customize(ctx, c, r, req, m)
		return true, p.begin(stepCustomize, task, err)
	}
	return false, nil
}

// note writes down the disks that are the instance's own: Delete destroys those only.
func note(ctx context.Context, c *vim25.Client, m clone) (reference, error) {
	disks, err := attached(ctx, c, m.Ref)
	if err != nil {
		return reference{}, err
	}
	home, err := folderOf(ctx, c, m.Ref)
	if err != nil {
		return reference{}, err
	}
	setting, err := noted(keyLaunched, launched{ownDisks(disks, home)})
	if err != nil {
		return reference{}, err
	}
	return reconfigure(ctx, c, m, types.VirtualMachineConfigSpec{ExtraConfig: []types.BaseOptionValue{setting}})
}

// reconfigure changes m unless somebody changed it since it was read.
func reconfigure(ctx context.Context, c *vim25.Client, m clone, spec types.VirtualMachineConfigSpec) (reference, error) {
	spec.ChangeVersion = m.Version
	task, err := object.NewVirtualMachine(c, m.Ref).Reconfigure(ctx, spec)
	return refOf(task), err
}

// await looks at a task until it has ended, for a while; nil is a task that the vCenter has forgotten.
func await(ctx context.Context, c *vim25.Client, task reference, patience time.Duration) (*types.TaskInfo, error) {
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)-margin)
	}
	wait := 10 * time.Millisecond
	for begin := time.Now(); ; wait = min(2*wait, lookAgain) {
		var t mo.Task
		err := property.DefaultCollector(c).RetrieveOne(ctx, task, []string{"info"}, &t)
		if name(faultOf(err)) == "ManagedObjectNotFound" {
			return nil, nil
		}
		if err != nil || ended(&t.Info) || time.Since(begin)+wait > patience {
			return &t.Info, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// cancel asks a task to end. One that has ended, or cannot, goes on as it is.
func cancel(ctx context.Context, c *vim25.Client, task reference) error {
	_, err := methods.CancelTask(ctx, c, &types.CancelTask{This: task})
	switch name(faultOf(err)) {
	case "InvalidState", "NotSupported", "ManagedObjectNotFound":
		return nil
	}
	return err
}

func refOf(t *object.Task) reference {
	if t == nil {
		return reference{}
	}
	return t.Reference()
}

func value(r *reference) reference {
	if r == nil {
		return reference{}
	}
	return *r
}

// owner returns the mark of a new instance.
func (d *driver) owner(r provider.Ref, req request) mark {
	return mark{Cluster: d.account.ClusterID, UID: string(r.UID), Of: req.Mark, Token: r.Token, Region: req.Region, Zone: req.Zone, Group: groupOf(req)}
}
