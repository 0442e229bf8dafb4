// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"errors"
	"fmt"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/kubeapi"
)

// Delete implements [provider.Driver]: take the image away, wait until the operator has cleaned the host, let it go
// (SPEC E33). Every write is of the version that was judged, so a host that another Machine took meanwhile is left.
func (d *driver) Delete(ctx context.Context, r provider.Ref) error {
	there := false
	err := unlessOvertaken(ctx, func() (err error) {
		there, err = d.remove(ctx, r)
		return err
	})
	if err == nil && !there {
		return provider.Errorf(provider.NotFound, "delete %s: it has no host", r.Name)
	}
	return err
}

// unlessOvertaken repeats f when the operator wrote meanwhile: what it wrote is judged.
func unlessOvertaken(ctx context.Context, f func() error) error {
	return provider.Coded(kubeapi.Again(ctx, f, ErrConflict))
}

// remove makes the next step for every host that r means, and reports whether one is still there.
func (d *driver) remove(ctx context.Context, r provider.Ref) (there bool, err error) {
	hosts, err := d.named(ctx, r)
	if err != nil {
		return true, err
	}
	for _, h := range hosts {
		gone, err := d.release(ctx, h)
		if err != nil && !errors.Is(err, ErrGone) {
			return true, fmt.Errorf("release host %s: %w", h.Name, err)
		}
		there = there || !gone && err == nil
	}
	return there, nil
}

// letGo goes on with a release that h's Machine began, before that gets another host. As long as it takes the error has the code Exhausted.
func (d *driver) letGo(ctx context.Context, h host) error {
	if deployed(h) { // who began to let it go took its image first: it is others who take it away
		return provider.Errorf(provider.Exhausted, "host %s is being taken away from this Machine", h.Name)
	}
	gone, err := d.release(ctx, h)
	switch code := provider.CodeOf(err); {
	case code == provider.Denied || code == provider.Invalid: // as fault says of a claim: no spec is to blame
		return provider.Errorf(provider.Exhausted, "release host %s: %w", h.Name, err)
	case err == nil && !gone:
		return provider.Errorf(provider.Exhausted, "host %s is still being released by this Machine", h.Name)
	case err != nil && !errors.Is(err, ErrGone):
		return fmt.Errorf("release host %s: %w", h.Name, err)
	}
	return nil
}

// release makes the next step towards a free host, and reports whether it was the last one.
func (d *driver) release(ctx context.Context, h host) (gone bool, err error) {
	p := patch{Metadata: patchMetadata{ResourceVersion: h.ResourceVersion}}
	off := h.Spec.DisablePowerOff || !h.Spec.Online
	if h.Spec.Image != nil || h.Spec.CustomDeploy != nil || h.Spec.UserData != nil || !off {
		p.Spec = map[string]any{"image": nil, "customDeploy": nil, "userData": nil}
		if !off {
			p.Spec["online"] = false
		}
		_, err = d.hosts.Patch(ctx, h.Namespace, h.Name, p)
		return false, err
	}
	if busy(h) {
		return false, nil
	}
	p.Metadata.Annotations = map[string]any{annotationCluster: nil, annotationMark: nil, annotationToken: nil, annotationHold: nil}
	p.Spec = map[string]any{"consumerRef": nil}
	_, err = d.hosts.Patch(ctx, h.Namespace, h.Name, p)
	return err == nil, err
}

// busy reports whether the operator has not finished with a host that was asked to stop.
func busy(h host) bool {
	switch h.Status.Provisioning.State { //nolint:exhaustive // in every other state it does nothing
	case metal3v1alpha1.StateProvisioning, metal3v1alpha1.StateProvisioned, metal3v1alpha1.StateDeprovisioning:
		return true
	case metal3v1alpha1.StatePoweringOffBeforeDelete: // which it gives up after some attempts
		return true
	case metal3v1alpha1.StateExternallyProvisioned:
		return h.Status.PoweredOn && !h.Spec.DisablePowerOff
	}
	return false
}
