// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"
	"strings"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	// annotationHold keeps a host off for as long as it is there; its name is that of OpenShift's actuator, so that either
	// goes on with what the other began (SPEC E36).
	annotationHold = metal3v1alpha1.RebootAnnotationPrefix + "/capbm-requested-power-off"
	// hardReboot does not ask an operating system that may hang.
	hardReboot = `{"mode":"hard"}`
)

var (
	_ provider.PowerCycler = (*driver)(nil)
	_ provider.PowerSwitch = (*driver)(nil)
)

// PowerCycle implements [provider.PowerCycler], for hosts that cannot be held off: the operator powers the host off, hard,
// and on again, and takes the annotation away.
func (d *driver) PowerCycle(ctx context.Context, r provider.Ref) error {
	return d.annotate(ctx, r, "power-cycle", metal3v1alpha1.RebootAnnotationPrefix, hardReboot)
}

// PowerOff implements [provider.PowerSwitch].
func (d *driver) PowerOff(ctx context.Context, r provider.Ref) error {
	return d.annotate(ctx, r, "power off", annotationHold, hardReboot)
}

// PowerOn implements [provider.PowerSwitch].
func (d *driver) PowerOn(ctx context.Context, r provider.Ref) error {
	return d.annotate(ctx, r, "power on", annotationHold, "")
}

// annotate gives the hosts that r means an annotation, or takes it away if it is to be empty, unless they are on their way
// out. The operator may write meanwhile: what it wrote is judged.
func (d *driver) annotate(ctx context.Context, r provider.Ref, what, key, value string) error {
	return unlessOvertaken(ctx, func() error {
		hosts, err := d.named(ctx, r)
		if err != nil {
			return err
		}
		there := false
		for _, h := range hosts {
			if state(h) == provider.StateDeleting {
				continue
			}
			there = true
			if _, has := h.Annotations[key]; has == (value != "") {
				continue
			}
			p := patch{Metadata: patchMetadata{h.ResourceVersion, map[string]any{key: nil}}}
			if value != "" {
				p.Metadata.Annotations[key] = value
			}
			if _, err := d.hosts.Patch(ctx, h.Namespace, h.Name, p); err != nil {
				return fmt.Errorf("%s host %s: %w", what, h.Name, err)
			}
		}
		if !there {
			return provider.Errorf(provider.NotFound, "%s %s: it has no host", what, r.Name)
		}
		return nil
	})
}

// power returns whether a host can be held off, or is. One that nobody can reach, that shall be off anyway, or that the
// operator only ever restarts cannot: that one would be restarted again and again.
func power(h host) provider.Power {
	switch {
	case held(h):
		return provider.PowerHeld
	case h.Spec.BMC.Address == "", !h.Spec.Online, h.Spec.DisablePowerOff, state(h) != provider.StateRunning:
		return ""
	}
	return provider.PowerOn
}

func held(h host) bool {
	_, held := h.Annotations[annotationHold]
	return held
}

// heldByOthers reports whether somebody else keeps h off: whoever took it would wait for them. Without a name of its own the annotation
// asks for a restart, which is over soon.
func heldByOthers(h host) bool {
	for key := range h.Annotations {
		if key != annotationHold && strings.HasPrefix(key, metal3v1alpha1.RebootAnnotationPrefix+"/") {
			return true
		}
	}
	return false
}
