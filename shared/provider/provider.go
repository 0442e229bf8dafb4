// SPDX-License-Identifier: Apache-2.0

// Package provider is the contract between the machine layer and a cloud.
package provider

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Driver is implemented by a cloud, bound to one account. Every method is idempotent and safe for concurrent use;
// every call is one bounded step (≤ 10 s); every error carries a [Code].
type Driver interface {
	// Resolve turns the filters of a providerSpec into ids, reading only. The answer is frozen in the Machine's intent
	// and given to every Create of the attempt. Invalid means the spec can never work as it stands; a filter that
	// matches nothing is Exhausted or NotFound, because the cloud's side may be mended (SPEC S22).
	Resolve(ctx context.Context, spec json.RawMessage) (json.RawMessage, error)
	// Create makes the next step towards the instance of r.Token. State Incomplete with Progress means: record the
	// progress and call again: at once where it is another than before, as after each step that was made, and after a pause where
	// it is as it was, because the call only waited. On a driver with tokens, repeating it never makes a second instance. An error that is
	// [Code.Definite] may come with Progress too, which takes the place of what r has: a step that failed is over.
	Create(ctx context.Context, r Ref, resolved json.RawMessage) (Instance, error)
	// Find returns every live instance with r's id or r's UID tag; without r.UID those of the cluster with r's id, whosever
	// tag they carry. It may lag behind Create by less than Horizon.
	// An empty answer without an error is absence as far as the cloud can tell now.
	Find(ctx context.Context, r Ref) ([]Instance, error)
	// List returns every live instance of the cluster id in this account, leftover children included. What the cloud knows
	// to be the cluster's, but carries no Machine's tag, is among them without a UID: nobody removes it.
	// A partial list is an error.
	List(ctx context.Context) ([]Instance, error)
	// Delete starts or continues removal, by id and by UID tag, children too; without r.UID only of the one instance,
	// or child, with r.ID; with r.Attempt only of what the attempt of r.Token made. It returns nil while something is still there, and NotFound once nothing is. Where reads lag
	// behind Create, what r records and the cloud does not show is still there as long as r is fresh ([Ref.Fresh]).
	Delete(ctx context.Context, r Ref) error
	// InstanceTypes returns what the cloud offers, sorted by name.
	InstanceTypes(ctx context.Context) ([]InstanceType, error)
	// Horizon is how long a create whose answer was lost may still surface as an instance: the 24 s of its invocation, plus
	// lag of List and Find, plus, without tokens, twice the clock skew (RELIABILITY G6).
	Horizon() time.Duration
}

// Untokened is implemented by drivers whose Create is not idempotent by token: an unresolved attempt waits out the
// Horizon instead of being repeated.
type Untokened interface {
	// Untokened marks the driver; it is never called.
	Untokened()
}

// Identified is implemented by drivers that can tell in which of the cloud's accounts they are: the same Secret may lead to
// another one tomorrow, where nothing of what was made today is, or is missing.
type Identified interface {
	// Identity returns what the cloud calls the account that the credentials lead to, the same for as long as they do; empty
	// if this cloud cannot tell. It writes nothing, and costs a call at most once in the driver's life, once anything was created there.
	Identity(ctx context.Context) (string, error)
}

// Insecure is implemented by drivers whose credentials may say that their cloud need not prove who it is.
type Insecure interface {
	// Insecure returns which key of the credentials says so, and how, without any secret; empty if the cloud has to prove it.
	// It asks nobody.
	Insecure() string
}

// Closer is implemented by drivers that keep something at their cloud while they are open, such as a session.
type Closer interface {
	// Close gives it back. Calls that are under way, or come later, still work.
	Close(ctx context.Context) error
}

// Ended is implemented by drivers whose clouds remember instances for a while after their end.
type Ended interface {
	// Ended returns why the instance with r's recorded id is gone, in the cloud's words; empty if the cloud does not know of
	// it, or does not say. It is the cloud's word that the instance ended, which its absence from a list is not. It writes
	// nothing.
	Ended(ctx context.Context, r Ref) (string, error)
}

// Updater is implemented by drivers that can change the tags of an instance while it lives (SPEC E1). Their lists tell
// the tags of every instance.
type Updater interface {
	// Tags returns the tags that a providerSpec wants for its instance, without asking the cloud; nil if it wants none.
	Tags(spec json.RawMessage) (map[string]string, error)
	// Update gives these tags to the instance with r's id or UID tag. Other tags stay as they are, and those by which a
	// driver knows whose an instance is never change. Repeating it changes nothing. NotFound means that there is none.
	Update(ctx context.Context, r Ref, tags map[string]string) error
}

// Ref names the instance of one Machine. UID is the Machine's and stable over attempts; Token changes with the
// attempt. ID and ProviderID are what was recorded of the instance, or empty; a Machine that another system made has
// only the ProviderID.
type Ref struct {
	UID        types.UID
	Name       string
	ID         string
	ProviderID string
	Token      string
	Attempt    bool // to Delete: nothing but what carries the Token, as late as the call may come; another attempt's stays
	Progress   []byte
	Began      time.Time // when the latest Create for it began; zero if that is not known, as of what is long there
}

// Fresh reports whether what r records may be so new at now that reads of a cloud with this Horizon do not show it.
func (r Ref) Fresh(now time.Time, horizon time.Duration) bool {
	return now.Before(r.Began.Add(horizon))
}

// State is the part of a cloud's state machine that matters here.
type State string

// States of an Instance.
const (
	StateIncomplete State = "incomplete" // call Create again with the Progress
	StatePending    State = "pending"    // exists, not yet running
	StateRunning    State = "running"
	StateStopped    State = "stopped"
	StateDeleting   State = "deleting" // still there, on its way out
	StateFailed     State = "failed"   // the cloud says that it will never run
)

// Instance is the cloud's view of a Machine.
type Instance struct {
	ID         string               `json:"id,omitempty"`         // the cloud's own id
	ProviderID string               `json:"providerID,omitempty"` // what Node.spec.providerID will be
	UID        types.UID            `json:"uid,omitempty"`        // the Machine UID in the instance's tag; empty if untagged
	ClusterUID types.UID            `json:"clusterUID,omitempty"` // the mark of the cluster that made it; empty if it carries none
	Sole       bool                 `json:"sole,omitempty"`       // nothing else can be in its place: it is its Machine's, whatever ids that has by now and wherever it runs
	Token      string               `json:"token,omitempty"`
	Name       string               `json:"name,omitempty"`
	State      State                `json:"state,omitempty"`
	Again      bool                 `json:"again,omitempty"`      // with StateDeleting: stays so until Delete is called again
	Power      Power                `json:"power,omitempty"`      // where the driver is a PowerSwitch
	CloudState string               `json:"cloudState,omitempty"` // the cloud's own word, for the instance-state annotation (SPEC S18)
	Type       string               `json:"type,omitempty"`
	Region     string               `json:"region,omitempty"`
	Zone       string               `json:"zone,omitempty"`
	Addresses  []corev1.NodeAddress `json:"addresses,omitempty"`
	Created    time.Time            `json:"created,omitzero"`  // zero if the cloud does not tell
	Message    string               `json:"message,omitempty"` // why it failed, in the cloud's words
	Code       Code                 `json:"code,omitempty"`    // of that; Exhausted: there was no room for it
	Spot       bool                 `json:"spot,omitempty"`
	Tags       map[string]string    `json:"tags,omitempty"`     // that a providerSpec may set, where the driver is an Updater
	Child      bool                 `json:"child,omitempty"`    // a leftover port, disk or NIC without its instance
	Status     json.RawMessage      `json:"status,omitempty"`   // providerStatus of the Machine, or nil
	Progress   []byte               `json:"progress,omitempty"` // with StateIncomplete
}

// Going reports whether the cloud removes the instance without any further call.
func (in Instance) Going() bool { return in.State == StateDeleting && !in.Again }

// InstanceType is one size a cloud offers.
type InstanceType struct {
	Name      string
	Arch      string
	MilliCPU  int64 // 0, as the memory: a Problem
	Memory    int64 // bytes
	Disk      int64 // bytes of ephemeral storage; 0 if unknown
	GPU       int64
	GPUType   string // the resource that Nodes offer them as; empty if unknown
	Zones     []string
	PriceHour float64 // 0 if unknown
	Problem   string  // what is unknown for a reason that a person should mend, and which
}

// Account is what a driver is bound to.
type Account struct {
	Kind      string // of the providerSpec
	ClusterID string // tag of everything the driver makes (SPEC S79)
	// ClusterUID is the mark of this one cluster, beside the id, which a copied configuration may give to another as well. What
	// is made carries it, as far as the request of its attempt does: one that was begun without goes on without. Nothing is
	// found, or removed, by it.
	ClusterUID  types.UID
	Region      string // or endpoint; as in the spec
	Namespace   string // of the Machines, and of every Secret
	Secret      string // name of the credentials Secret; empty if the cloud needs none
	Credentials Credentials
	// VirtualIPs are the cluster's addresses that move between its Nodes, sorted: those of the API and of the ingress.
	VirtualIPs []string
	// UserData reads one Secret of the namespace; the second result is its resourceVersion. Its error is Exhausted where the Secret is not
	// there, which people mend, and Unknown where it could not be read: no attempt is refused for that.
	UserData func(ctx context.Context, name string) (map[string][]byte, string, error) `json:"-"`
}

// Key identifies the account in intents, state and metrics. It holds no secret.
func (a Account) Key() string {
	return a.Kind + "/" + a.Region + "/" + a.Namespace + "/" + a.Secret
}

// Open binds a driver to one account; it is called again when the Secret changes.
type Open func(ctx context.Context, a Account) (Driver, error)

// Provider is one line of the table of drivers: how a kind of providerSpec is served.
type Provider struct {
	Name  string // of the product: "openstack"; events come from "<name>_controller" (SPEC S23)
	Kinds []string
	// Account says, from the spec alone, which region and Secret it needs. Its error is Invalid.
	Account func(spec json.RawMessage) (region, secret string, err error)
	// InstanceType returns the name of the type that the spec asks for, and of the capacity what the spec itself states.
	InstanceType func(spec json.RawMessage) (InstanceType, error)
	AnyCase      bool // names of types are the same in whatever letters
	Open         Open
}
