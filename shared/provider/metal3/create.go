// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// choice is the progress of a creation: one host as it was read. It is recorded in the Machine's intent before the host
// is claimed, and only that very version of the host can be claimed by it. So a Machine whose recorded choice changes
// can never take the former host too: it changed, or it would still be the choice (RELIABILITY R-B33).
type choice struct {
	Host    string    `json:"host"`
	UID     types.UID `json:"uid"`
	Version string    `json:"version"`
}

// Create implements [provider.Driver]: choose a host, then claim it. A Machine that has a host gets no other. One that it began to let
// go, as of a Machine whose deletion a restored backup knows nothing of, is let go first: nobody else would.
func (d *driver) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	s, err := parse(resolved, d.namespace)
	if err != nil {
		return provider.Instance{}, err
	}
	in, err := d.create(ctx, r, s)
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrGone) { // somebody was faster: the next step chooses again
		in, err = d.create(ctx, r, s)
	}
	return in, provider.Coded(err)
}

func (d *driver) create(ctx context.Context, r provider.Ref, s providerspec.BareMetal) (provider.Instance, error) {
	all, err := d.hosts.List(ctx, d.namespace)
	if err != nil {
		return provider.Instance{}, err
	}
	for _, h := range all {
		if !d.means(provider.Ref{UID: r.UID, Name: r.Name}, h) {
			continue
		}
		if in := d.instance(h); in.State != provider.StateDeleting {
			return in, nil
		}
		if err := d.letGo(ctx, h); err != nil {
			return provider.Instance{}, err
		}
	}
	var chosen choice
	if len(r.Progress) > 0 {
		if err := json.Unmarshal(r.Progress, &chosen); err != nil {
			return provider.Instance{}, fmt.Errorf("read progress %q: %w", r.Progress, err)
		}
	}
	for _, h := range all {
		if chosen == (choice{h.Name, h.UID, h.ResourceVersion}) && why(h, s.HostSelector) == "" {
			claimed, err := d.hosts.Patch(ctx, h.Namespace, h.Name, d.claim(r, s, h))
			if fault(err) {
				return passOver(r, all, h, s.HostSelector), provider.Errorf(provider.Exhausted, "claim host %s: %w", h.Name, err)
			}
			if err != nil {
				return provider.Instance{}, fmt.Errorf("claim host %s: %w", h.Name, err)
			}
			return d.instance(claimed), nil
		}
	}
	return choose(r, all, s.HostSelector)
}

// choose returns the first step: of the hosts that are free, the one that r's Machine ranks highest. Every Machine ranks
// them in an order of its own, so that many Machines at once seldom want the same.
func choose(r provider.Ref, all []host, want providerspec.BareMetalHostSelector) (provider.Instance, error) {
	var best host
	var most uint64
	refused := map[string]int{}
	for _, h := range all {
		if no := why(h, want); no != "" {
			refused[no]++
			continue
		}
		if n := rank(r.UID, h.UID); n >= most {
			best, most = h, n
		}
	}
	if best.Name == "" {
		return provider.Instance{}, provider.ErrorAfter(provider.Exhausted, restock, "No available BareMetalHost found: %s", tally(len(all), refused))
	}
	progress, err := json.Marshal(choice{best.Name, best.UID, best.ResourceVersion})
	if err != nil {
		return provider.Instance{}, fmt.Errorf("record the choice of %s: %w", best.Name, err)
	}
	return provider.Instance{UID: r.UID, Token: r.Token, Name: r.Name, State: provider.StateIncomplete, Progress: progress}, nil
}

// fault reports whether the API server takes no change of a host for what it is, as a webhook or a schema does that came later than
// the host, and not for what a claim writes.
func fault(refusal error) bool {
	var status apierrors.APIStatus
	if provider.CodeOf(refusal) != provider.Invalid || !errors.As(refusal, &status) || status.Status().Details == nil {
		return provider.CodeOf(refusal) == provider.Denied
	}
	return !slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return slices.ContainsFunc([]string{"spec.image", "spec.customDeploy", "spec.userData"}, func(field string) bool { return strings.HasPrefix(c.Field, field) })
	})
}

// passOver chooses the host that comes after h in the order of r's Machine, or the first again after the last.
func passOver(r provider.Ref, all []host, h host, want providerspec.BareMetalHostSelector) provider.Instance {
	after := slices.DeleteFunc(slices.Clone(all), func(o host) bool { return rank(r.UID, o.UID) >= rank(r.UID, h.UID) })
	next, err := choose(r, after, want)
	if err != nil {
		next, _ = choose(r, all, want) // h itself, at least
	}
	return next
}

func rank(machine, host types.UID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(machine) + "/" + string(host))) // a hash takes everything
	return h.Sum64()
}

// claim is the one write that makes a host, as it was read, the Machine's and lets its image be written (SPEC E30, E32).
func (d *driver) claim(r provider.Ref, s providerspec.BareMetal, h host) patch {
	spec := map[string]any{
		"consumerRef": corev1.ObjectReference{
			APIVersion: consumerVersion, Kind: consumerKind, Namespace: d.namespace, Name: r.Name, UID: r.UID,
		},
		"image": nil, "customDeploy": nil, "userData": nil,
		"online": true,
	}
	if s.Image.URL != "" {
		spec["image"] = metal3v1alpha1.Image{URL: s.Image.URL, Checksum: s.Image.Checksum}
	}
	if s.CustomDeploy.Method != "" {
		spec["customDeploy"] = metal3v1alpha1.CustomDeploy{Method: s.CustomDeploy.Method}
	}
	if s.UserData.Name != "" {
		spec["userData"] = corev1.SecretReference{Name: s.UserData.Name, Namespace: d.namespace}
	}
	p := patch{
		Metadata: patchMetadata{h.ResourceVersion, map[string]any{annotationCluster: d.cluster, annotationToken: r.Token}},
		Spec:     spec,
	}
	if d.mark != "" {
		p.Metadata.Annotations[annotationMark] = string(d.mark)
	}
	if held(h) { // for a Machine that it is not of any more
		p.Metadata.Annotations[annotationHold] = nil
	}
	return p
}

// why returns what speaks against a Machine taking h, or "" (SPEC E30).
func why(h host, want providerspec.BareMetalHostSelector) string {
	_, paused := h.Annotations[metal3v1alpha1.PausedAnnotation]
	_, detached := h.Annotations[metal3v1alpha1.DetachedAnnotation]
	state := h.Status.Provisioning.State
	switch {
	case !matches(want, h.Labels):
		return "not selected by hostSelector"
	case h.Spec.ConsumerRef != nil:
		return "consumed"
	case h.DeletionTimestamp != nil:
		return "being deleted"
	case h.Spec.ExternallyProvisioned:
		return "externally provisioned"
	case h.Status.ErrorMessage != "":
		return "in error"
	case paused:
		return "paused"
	case detached:
		return "detached"
	case heldByOthers(h):
		return "held off"
	case h.Spec.Image != nil, h.Spec.CustomDeploy != nil:
		return "provisioned by somebody else"
	case state != metal3v1alpha1.StateReady && state != metal3v1alpha1.StateAvailable:
		return "not available yet"
	}
	return ""
}

// tally says in a fixed order why none of n hosts could be had.
func tally(n int, refused map[string]int) string {
	if n == 0 {
		return "there is none in the namespace"
	}
	parts := make([]string, 0, len(refused))
	for _, reason := range []string{
		"not selected by hostSelector", "consumed", "being deleted", "externally provisioned", "in error", "paused", "detached",
		"held off", "provisioned by somebody else", "not available yet",
	} {
		if refused[reason] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", refused[reason], reason))
		}
	}
	return fmt.Sprintf("of %d, %s", n, strings.Join(parts, ", "))
}

// matches reports whether labels satisfy all that a selector wants; a spec that was parsed has no bad requirement.
func matches(want providerspec.BareMetalHostSelector, have map[string]string) bool {
	if !labels.SelectorFromSet(want.MatchLabels).Matches(labels.Set(have)) {
		return false
	}
	for _, e := range want.MatchExpressions {
		r, err := labels.NewRequirement(e.Key, selection.Operator(strings.ToLower(e.Operator)), e.Values)
		if err != nil || !r.Matches(labels.Set(have)) {
			return false
		}
	}
	return true
}
