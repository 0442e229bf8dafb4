// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/kubeapi"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// The contract with whoever gives addresses, as OpenShift has it: a claim for each pool of each network card, named after
// the Machine; what is given is another object
// (https://github.com/openshift/enhancements/blob/master/enhancements/installer/vsphere-ipi-static-ip.md).
const (
	ipamGroup       = "ipam.cluster.x-k8s.io"
	ipamVersion     = "v1beta1"
	claimProtection = "machine.openshift.io/ip-claim-protection" // until the instance is gone (SPEC E25)
	// claimAccount names the account whose instance gets the address. Only there a claim that outlived its Machine is let go:
	// in every other account that instance is missing anyhow.
	claimAccount = "machine.openshift.io/vsphere-account"
	// givenWithin is how long an address may take before people are told that none is given.
	givenWithin = time.Minute
)

// Addresses are the pools of an API server, from which network cards get addresses (SPEC E22).
type Addresses struct{ api *kubeapi.Client }

// NewAddresses returns the pools of the API server that config describes, without asking it anything.
func NewAddresses(config *rest.Config) (*Addresses, error) {
	api, err := kubeapi.New(config)
	if err != nil {
		return nil, err
	}
	return &Addresses{api}, nil
}

// claim asks a pool for an address.
type claim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   claimSpec   `json:"spec"`
	Status claimStatus `json:"status,omitzero"`
}

// claims is a list of them.
type claims struct {
	Kind  string  `json:"kind"`
	Items []claim `json:"items"`
}

type claimSpec struct {
	PoolRef corev1.TypedLocalObjectReference `json:"poolRef"`
}

type claimStatus struct {
	AddressRef corev1.LocalObjectReference `json:"addressRef,omitzero"`
	Conditions []claimCondition            `json:"conditions,omitempty"`
}

type claimCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// given is an address, from a pool.
type given struct {
	Spec struct {
		Address string `json:"address"`
		Prefix  int    `json:"prefix"`
		Gateway string `json:"gateway"`
	} `json:"spec"`
}

// give returns network cards with the addresses that their pools give, and whether all have been given. Each is claimed
// once for a Machine, and kept until release.
func (a *Addresses) give(ctx context.Context, of provider.Account, r provider.Ref, cards []providerspec.VSphereDevice) ([]providerspec.VSphereDevice, bool, error) {
	if !slices.ContainsFunc(cards, func(c providerspec.VSphereDevice) bool { return len(c.AddressesFromPools) > 0 }) {
		return cards, true, nil
	}
	if a == nil {
		return nil, false, provider.Errorf(provider.Exhausted, "%s: addressesFromPools: there is no API server with pools", at("network", "devices"))
	}
	filled, all := slices.Clone(cards), true
	for i := range filled {
		card := &filled[i]
		card.IPAddrs = slices.Clone(card.IPAddrs)
		for j, pool := range card.AddressesFromPools {
			c, err := a.claim(ctx, of, claimName(r, i, j), r, pool)
			if err != nil {
				return nil, false, fmt.Errorf("%s: %w", at("network", "devices").Index(i).Child("addressesFromPools").Index(j), err)
			}
			if c.Status.AddressRef.Name == "" {
				all = false
				continue
			}
			if err := a.take(ctx, c, card); err != nil {
				return nil, false, err
			}
		}
	}
	return filled, all, nil
}

func claimName(r provider.Ref, card, pool int) string {
	return fmt.Sprintf("%s-claim-%d-%d", r.Name, card, pool)
}

// claim returns a claim of r's Machine, which is made if it is not there.
func (a *Addresses) claim(ctx context.Context, of provider.Account, name string, r provider.Ref, pool providerspec.VSpherePool) (claim, error) {
	namespace := of.Namespace
	c, err := a.find(ctx, namespace, name)
	if errors.Is(err, kubeapi.ErrGone) {
		err = a.api.Do(ctx, kubeapi.Request{Method: http.MethodPost, Path: ipamPath(namespace, "ipaddressclaims", ""), Body: newClaim(of, name, r, pool)}, &c)
		if errors.Is(err, kubeapi.ErrExists) { // somebody was faster
			c, err = a.find(ctx, namespace, name)
		}
	}
	switch owner := ownerOf(c); {
	case errors.Is(err, kubeapi.ErrUnserved) && a.api.Lacks(ctx, ipamGroup):
		return c, provider.Errorf(provider.Exhausted, "the API server knows no IPAddressClaims: install what gives addresses from pool %q", pool.Name)
	case err != nil:
		return c, fmt.Errorf("claim %s/%s: %w", namespace, name, err)
	case owner != "" && owner != string(r.UID):
		return c, provider.Errorf(provider.Exhausted, "IPAddressClaim %s/%s is another Machine's, which has yet to go", namespace, name)
	case owner != "" && !c.isOf(pool): // what it gives would be of another network
		return c, provider.Errorf(provider.Exhausted, "IPAddressClaim %s/%s is of pool %q, which an attempt before asked, not of %q: take its finalizer %s off and delete it, or delete the Machine",
			namespace, name, c.Spec.PoolRef.Name, pool.Name, claimProtection)
	case c.Status.AddressRef.Name == "" && time.Since(c.CreationTimestamp.Time) > givenWithin:
		return c, provider.Errorf(provider.Exhausted, "IPAddressClaim %s/%s has had no address from pool %q since %s: %s",
			namespace, name, pool.Name, c.CreationTimestamp.UTC().Format(time.RFC3339), c.why())
	}
	return c, nil
}

func newClaim(of provider.Account, name string, r provider.Ref, pool providerspec.VSpherePool) claim {
	c := claim{TypeMeta: metav1.TypeMeta{APIVersion: ipamGroup + "/" + ipamVersion, Kind: "IPAddressClaim"}}
	c.Namespace, c.Name, c.Finalizers = of.Namespace, name, []string{claimProtection}
	c.Annotations = map[string]string{claimAccount: of.Key()}
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "machine.openshift.io/v1beta1", Kind: "Machine", Name: r.Name, UID: r.UID}}
	c.Spec.PoolRef = corev1.TypedLocalObjectReference{APIGroup: &pool.Group, Kind: pool.Resource, Name: pool.Name}
	return c
}

// isOf reports whether a claim asks a pool.
func (c claim) isOf(pool providerspec.VSpherePool) bool {
	ref := c.Spec.PoolRef
	return ref.Name == pool.Name && ref.Kind == pool.Resource && (ref.APIGroup == nil && pool.Group == "" || ref.APIGroup != nil && *ref.APIGroup == pool.Group)
}

// why says why a claim has no address, in the words of whoever should give it.
func (c claim) why() string {
	for _, condition := range c.Status.Conditions {
		if condition.Type == "Ready" && condition.Status != "True" && condition.Message != "" {
			return condition.Message
		}
	}
	return "does anybody give addresses from it?"
}

// ownerOf returns the UID of the Machine that a claim is for; empty if an installer made it.
func ownerOf(c claim) string {
	for _, o := range c.OwnerReferences {
		if o.Kind == "Machine" {
			return string(o.UID)
		}
	}
	return ""
}

// take adds the address that a claim was given to its network card.
func (a *Addresses) take(ctx context.Context, c claim, card *providerspec.VSphereDevice) error {
	if wrong := validation.IsDNS1123Subdomain(c.Status.AddressRef.Name); len(wrong) > 0 { // it would lead to another object
		return provider.Errorf(provider.Exhausted, "IPAddressClaim %s/%s: %q is no name of an IPAddress: %s", c.Namespace, c.Name, c.Status.AddressRef.Name, wrong[0])
	}
	var g given
	if err := a.api.Do(ctx, kubeapi.Request{Method: http.MethodGet, Path: ipamPath(c.Namespace, "ipaddresses", c.Status.AddressRef.Name)}, &g); err != nil {
		return fmt.Errorf("address %s/%s: %w", c.Namespace, c.Status.AddressRef.Name, err)
	}
	address, err := netip.ParseAddr(g.Spec.Address)
	if err == nil && !netip.PrefixFrom(address, g.Spec.Prefix).IsValid() {
		err = fmt.Errorf("prefix %d", g.Spec.Prefix)
	}
	if err != nil {
		return provider.Errorf(provider.Exhausted, "IPAddress %s/%s is no address: %w", c.Namespace, c.Status.AddressRef.Name, err)
	}
	if _, err := parseAddress(g.Spec.Gateway); err != nil && g.Spec.Gateway != "" {
		return provider.Errorf(provider.Exhausted, "IPAddress %s/%s: gateway: %w", c.Namespace, c.Status.AddressRef.Name, err)
	}
	card.IPAddrs = append(card.IPAddrs, netip.PrefixFrom(address, g.Spec.Prefix).String())
	card.Gateway = strings.TrimSpace(card.Gateway + " " + g.Spec.Gateway) // as gatewayOf reads it
	return nil
}

// release lets the addresses of r's Machine go with it: its claims are the Machine's own and go when it does. Its error is
// [kubeapi.ErrConflict] if somebody else writes one: then it is still there.
func (a *Addresses) release(ctx context.Context, namespace string, r provider.Ref) error {
	all, err := a.list(ctx, namespace)
	if err != nil {
		return err
	}
	for _, c := range all {
		if ownerOf(c) != string(r.UID) {
			continue
		}
		if err := a.unprotect(ctx, c); err != nil {
			return fmt.Errorf("release address claim %s/%s: %w", namespace, c.Name, err)
		}
	}
	return nil
}

// list returns the claims of a namespace; none where nobody has installed the kind.
func (a *Addresses) list(ctx context.Context, namespace string) ([]claim, error) {
	var all claims
	err := a.api.Do(ctx, kubeapi.Request{Method: http.MethodGet, Path: ipamPath(namespace, "ipaddressclaims", "")}, &all)
	switch {
	case errors.Is(err, kubeapi.ErrUnserved) && a.api.Lacks(ctx, ipamGroup):
		return nil, nil
	case err == nil && (all.Kind != "IPAddressClaimList" || all.Items == nil):
		err = fmt.Errorf("the answer is a %q and no list of them", all.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("address claims in %s: %w", namespace, err)
	}
	return all.Items, nil
}

// leftovers returns the claims in an account of Machines that have no instance there: of one that is being made, or of one
// that is gone and whose claim came too late for its removal. Without a Machine sweep-instances lets the latter go. An attempt in
// another account goes on with the claims of one before it: while the Machine is there, its instance may have the address (SPEC E25).
func (a *Addresses) leftovers(ctx context.Context, of provider.Account, have []provider.Instance) ([]provider.Instance, error) {
	if a == nil {
		return nil, nil
	}
	all, err := a.list(ctx, of.Namespace)
	if err != nil {
		return nil, err
	}
	used := map[types.UID]bool{}
	for _, in := range have {
		used[in.UID] = true
	}
	var left []provider.Instance
	for _, c := range all {
		uid := types.UID(ownerOf(c))
		if uid == "" || used[uid] || c.Annotations[claimAccount] != of.Key() || !slices.Contains(c.Finalizers, claimProtection) {
			continue
		}
		left = append(left, provider.Instance{
			ID: "ipaddressclaim/" + c.Name, UID: uid, Name: c.Name, Created: c.CreationTimestamp.Time, Sole: true, Child: true,
		})
	}
	return left, nil
}

func (a *Addresses) unprotect(ctx context.Context, c claim) error {
	if !slices.Contains(c.Finalizers, claimProtection) {
		return nil
	}
	change := map[string]any{"metadata": map[string]any{
		"resourceVersion": c.ResourceVersion,
		"finalizers":      slices.DeleteFunc(slices.Clone(c.Finalizers), func(f string) bool { return f == claimProtection }),
	}}
	err := a.api.Do(ctx, kubeapi.Request{Method: http.MethodPatch, Path: ipamPath(c.Namespace, "ipaddressclaims", c.Name), Body: change}, &c)
	if errors.Is(err, kubeapi.ErrGone) {
		return nil
	}
	return err
}

func (a *Addresses) find(ctx context.Context, namespace, name string) (c claim, err error) {
	err = a.api.Do(ctx, kubeapi.Request{Method: http.MethodGet, Path: ipamPath(namespace, "ipaddressclaims", name)}, &c)
	return c, err
}

func ipamPath(namespace, resource, name string) []string {
	return []string{"apis", ipamGroup, ipamVersion, "namespaces", namespace, resource, name}
}
