// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const sweepSchema = 1

// SweepKey is the key of the state in the ConfigMap of name ConfigMapSweep.
const SweepKey = "state"

// SweepState is what sweep-instances remembers between sweeps, in the ConfigMap of name ConfigMapSweep. It is written
// by compare-and-swap.
type SweepState struct {
	Schema int `json:"schema"`
	// Accounts are the clouds that Machines ever used, by account key, until they are known to be empty.
	Accounts map[string]SweptAccount `json:"accounts,omitempty"`
	// Sightings are the instances that no Machine owns, by [SightingKey] or [ForeignKey]: since when that is known.
	Sightings map[string]metav1.Time `json:"sightings,omitempty"`
}

// SweptAccount says how to open an account again once no Machine names it any more.
type SweptAccount struct {
	Namespace string `json:"namespace"`
	ClusterID string `json:"clusterID"`
	// Spec is a providerSpec that leads to it; empty where there was no room for it.
	Spec       json.RawMessage `json:"spec,omitempty"`
	EmptySince *metav1.Time    `json:"emptySince,omitempty"`
	// Owner is what the cloud calls the account that its credentials led to; empty if it cannot tell.
	Owner string `json:"owner,omitempty"`
	// Of is set where the credentials have led elsewhere since: the key of the account that has them. Nobody can see what is
	// left there until they lead back, or others do ([Shown]).
	Of string `json:"of,omitempty"`
}

// EmptyFor reports whether the account was found empty twice, this long apart.
func (a SweptAccount) EmptyFor(horizon time.Duration, now time.Time) bool {
	return a.EmptySince != nil && !now.Before(a.EmptySince.Add(horizon))
}

// LedTo notes in known, which it changes, that the credentials of the account key lead to owner. Where they led before stays
// on record, until credentials of its namespace show it, unless it was empty: the same owner in another region, or under another id of
// the cluster, shows other instances, and those of another namespace do not say whose they are. An owner that nobody told says nothing.
func LedTo(known map[string]SweptAccount, key, owner string, empty bool) {
	a, ok := known[key]
	if !ok || owner == "" {
		return
	}
	if a.Owner != "" && !SameOwner(a.Owner, owner) {
		if former := a; !empty {
			former.Of, former.EmptySince = key, nil
			known[key+"#"+a.Owner] = former
		}
		a.EmptySince = nil
	}
	a.Owner = owner
	known[key] = a
	for k, former := range known {
		if former.Namespace == a.Namespace && a.shows(key, former) {
			delete(known, k)
		}
	}
}

// SameOwner reports whether two of a cloud's accounts are one: after a colon each may say in which region, which a former version left out,
// and a driver does where the cloud names none.
func SameOwner(a, b string) bool {
	a, in, told := strings.Cut(a, ":")
	b, at, both := strings.Cut(b, ":")
	return a == b && (in == at || !told || !both)
}

// Shown reports whether credentials in known lead where those of former led before.
func Shown(known map[string]SweptAccount, former SweptAccount) bool {
	for key, a := range known {
		if a.shows(key, former) {
			return true
		}
	}
	return false
}

// shows reports whether the credentials of a, whose key that is, lead where those of former led before.
func (a SweptAccount) shows(key string, former SweptAccount) bool {
	return a.Of == "" && former.Of != "" && SameOwner(a.Owner, former.Owner) && a.ClusterID == former.ClusterID && !OtherRegion(former.Of, key)
}

// SweptKey returns under which key of known the instances of a cluster in an account are, or will be: the account's own, but
// for a cluster whose id has changed, of whose former instances some are left.
func SweptKey(account, clusterID string, known ...map[string]SweptAccount) string {
	for _, k := range known {
		if of, ok := k[account]; ok && of.ClusterID != clusterID && clusterID != "" {
			return account + "@" + clusterID
		}
	}
	return account
}

// SweptOf returns the account that a key of SweptKey is about.
func SweptOf(key, clusterID string) string { return strings.TrimSuffix(key, "@"+clusterID) }

// OtherRegion reports whether two keys name different regions, or endpoints: then nothing is in both of the accounts, which keys alone do
// not say, as two Secrets may have credentials for one.
func OtherRegion(a, b string) bool {
	x, inA := regionIn(a)
	y, inB := regionIn(b)
	return inA && inB && x != y
}

// regionIn returns the kind and the region that the key of an account begins with: before its namespace and Secret.
func regionIn(key string) (string, bool) {
	parts := strings.Split(key, "/")
	if len(parts) < 4 || parts[1] == "" {
		return "", false
	}
	return strings.Join(parts[:len(parts)-2], "/"), true
}

// SweptNodes takes the place of an account in the keys of sightings that are Nodes.
const SweptNodes = "node"

// sweptForeign does so in those of instances that carry no Machine's tag.
const sweptForeign = "foreign"

// Orphans returns how many of the sightings are instances that were made for a Machine; the others are Nodes that outlived
// their Machines, and what is only reported because nobody knows whose it is.
func (s SweepState) Orphans() int {
	n := 0
	for key := range s.Sightings {
		if !strings.HasPrefix(key, SightingKey(SweptNodes, "")) && !strings.HasPrefix(key, SightingKey(sweptForeign, "")) {
			n++
		}
	}
	return n
}

// SightingKey identifies an instance of an account in Sightings.
func SightingKey(account, id string) string { return account + " " + id }

// ForeignKey does so where it carries no Machine's tag.
func ForeignKey(account, id string) string {
	return SightingKey(sweptForeign, SightingKey(account, id))
}

// SweepStateIn returns the state in the ConfigMap of name ConfigMapSweep; nil, which has none, is a state without memories. Its
// errors are those of [ParseSweepState].
func SweepStateIn(cm *corev1.ConfigMap) (SweepState, error) {
	if cm == nil {
		return ParseSweepState("")
	}
	return ParseSweepState(cm.Data[SweepKey])
}

// ParseSweepState reads a state; the empty text is a state without memories. It refuses unknown fields; a newer
// schema, whatever its fields, is ErrNewer.
func ParseSweepState(text string) (SweepState, error) {
	if text == "" {
		return SweepState{Schema: sweepSchema}, nil
	}
	var s SweepState
	if err := ReadSchema(text, &s, &s.Schema, sweepSchema); err != nil {
		return SweepState{}, fmt.Errorf("parse sweep state: %w", err)
	}
	for key, a := range s.Accounts {
		if string(a.Spec) == "null" { // as a former version writes what it found without one
			a.Spec = nil
			s.Accounts[key] = a
		}
	}
	return s, nil
}

// String returns the state as it is stored.
func (s SweepState) String() string {
	b, err := json.Marshal(s)
	if err != nil { // Spec was valid JSON where it came from
		return ""
	}
	return string(b)
}
