// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// Keys of the ConfigMap that the autoscaler keeps: what it tells people (SPEC C77) and what it must not forget.
const (
	StatusKey = "status"
	StateKey  = "state"
)

// stateSchema is the version written, freshSchema while a removal is fresh, and leftSchema while it is known what is left of a list, which who
// knows only those before could not read; a higher one found belongs to a newer revision (RELIABILITY G9).
const (
	stateSchema = 1
	freshSchema = 2
	leftSchema  = 3
)

// State is everything evaluate-autoscale remembers from one scan to the next. It is written by compare-and-swap and
// holds absolute times only, so that waiting writes nothing and a restart changes no decision (RELIABILITY 2d).
type State struct {
	Schema int `json:"schema"`

	LastScaleUp   *metav1.Time `json:"lastScaleUp,omitempty"` // but for what Groups say of growths
	LastScaleDown *metav1.Time `json:"lastScaleDown,omitempty"`
	LastFailure   *metav1.Time `json:"lastFailure,omitempty"` // of a scale-down

	Groups   map[string]NodeGroup      `json:"groups,omitempty"`   // by group id: MachineSet/namespace/name
	Unneeded map[types.UID]metav1.Time `json:"unneeded,omitempty"` // since when, by Node UID
	Held     map[types.UID]Held        `json:"held,omitempty"`     // reasons that are not on their Nodes yet, by Node UID; Pods that fit a Node, by theirs
	Removals []Removal                 `json:"removals,omitempty"` // sorted by Node name
	Repack   *Repack                   `json:"repack,omitempty"`
	Headroom string                    `json:"headroom,omitempty"` // the last that could be read
	Stopped  *metav1.Time              `json:"stopped,omitempty"`  // since when nothing may scale, and nothing is left to be put to rest
	Seen     Seen                      `json:"seen,omitzero"`
}

// Held is a reason why a Node stays that has not held for long enough to be written on the Node, or since when a Pod fits a Node that the
// scheduler does not give it.
type Held struct {
	Reason string      `json:"reason"` // digest
	Since  metav1.Time `json:"since"`
}

// Repack is a Node that is to go although it is used, because what its Pods need elsewhere is cheaper.
type Repack struct {
	Node    string      `json:"node"`
	NodeUID types.UID   `json:"nodeUID"`
	At      metav1.Time `json:"at"`
	Failed  bool        `json:"failed,omitempty"` // it did not come true in time; no other one is tried for a while
}

// NodeGroup is what is remembered about one set of Machines that is resized.
type NodeGroup struct {
	Resize  *Resize   `json:"resize,omitempty"`
	Request *Request  `json:"request,omitempty"`
	Waves   []Wave    `json:"waves,omitempty"`   // in the order in which they were asked for
	Useless []Useless `json:"useless,omitempty"` // sorted by shape

	Failures     int          `json:"failures,omitempty"` // in a row, each after the backoff of the one before
	LastFailure  *metav1.Time `json:"lastFailure,omitempty"`
	BackoffUntil *metav1.Time `json:"backoffUntil,omitempty"`
	Reason       string       `json:"reason,omitempty"` // of the backoff
	FailedUIDs   []types.UID  `json:"failed,omitempty"` // Machines whose failure was counted, sorted; of a set that is not resized those that were late
}

// Resize is a committed change of a set's replicas. It is executed once the set carries Plan in its annotation, and
// void if the set moved on from ResourceVersion without.
type Resize struct {
	Plan            string      `json:"plan"`
	SetUID          types.UID   `json:"setUID"`
	ResourceVersion string      `json:"resourceVersion"`
	From            int32       `json:"from"`
	To              int32       `json:"to"`
	At              metav1.Time `json:"at"`

	Lost []Lost `json:"lost,omitempty"` // go with it by name
}

// Lost is a Machine that will not bring a Node; without a UID one that was not created when that was decided.
type Lost struct {
	Machine string    `json:"machine"`
	UID     types.UID `json:"uid,omitempty"`
}

// Request is a group's nodes being waited for. More of them extend it (SPEC C47).
type Request struct {
	At       metav1.Time `json:"at"`
	Pods     []string    `json:"pods,omitempty"` // what an earlier revision wrote: Wave takes its place, it is not looked at
	TimedOut bool        `json:"timedOut,omitempty"`
}

// Wave is Nodes that were asked for at once, with the Pods that had a place once they are there: these Pods bring no
// other Nodes while the wave is on its way, whatever another packing makes of them. Of a set that is not resized it is since when its Nodes
// are awaited, for so many Machines (0: for none now), with no Pods and no Request.
type Wave struct {
	At   metav1.Time `json:"at"`
	To   int32       `json:"to"`   // Machines that the set was to have with them
	Pods string      `json:"pods"` // marks of the Pods, as Marks writes them
}

// Useless says that a Node came for Pods and cannot hold them: the set brings no other one for such Pods for a while.
type Useless struct {
	Shape   string      `json:"shape"` // digest of what the Pods ask for
	Of      string      `json:"of"`    // what the set made its Machines of
	Node    string      `json:"node"`
	NodeUID types.UID   `json:"nodeUID"`
	Reason  string      `json:"reason"`
	Times   int         `json:"times"` // in a row
	Until   metav1.Time `json:"until"`
}

// Removal is the plan to remove one Node. It is current as long as it stands in the state.
type Removal struct {
	Plan       string       `json:"plan"` // value of the Node's taint
	Group      string       `json:"group"`
	Node       string       `json:"node"`
	NodeUID    types.UID    `json:"nodeUID"`
	Machine    string       `json:"machine"`
	MachineUID types.UID    `json:"machineUID"`
	At         metav1.Time  `json:"at"`                  // since when its taint is known to stand; while it is fresh, when it was decided
	Fresh      bool         `json:"fresh,omitempty"`     // nobody has seen its taint yet
	Drain      bool         `json:"drain,omitempty"`     // Pods have to leave; without it a Pod that appears ends the plan
	MaxGrace   int64        `json:"maxGrace"`            // seconds that an evicted Pod gets at most (SPEC C64)
	Resize     string       `json:"resize,omitempty"`    // plan that lowers replicas and names the Machine as victim
	Committed  *metav1.Time `json:"committed,omitempty"` // when that was decided
}

// Namespace returns where the Machine is, which its group tells; "" of a group that nobody here names so.
func (r Removal) Namespace() string {
	if parts := strings.Split(r.Group, "/"); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// Seen is how much the last believed lists held, to notice lists that lost half of it (RELIABILITY G8).
type Seen struct {
	Nodes int          `json:"nodes,omitempty"`
	Pods  int          `json:"pods,omitempty"`
	Doubt *metav1.Time `json:"doubt,omitempty"` // since when a list is too short to be believed
	Left  *Left        `json:"left,omitempty"`  // what they held then; nil: who began to doubt did not say
}

// Left is what is left of lists that lost half of what they held.
type Left struct {
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
}

// mostCounted is the most that a state counts: one more than the largest number that there is could not be read again.
const mostCounted = 1_000_000

// ParseState reads the value under StateKey; the empty text is a state without memories. It refuses unknown fields,
// fields said twice, counts below what there can be, and a newer schema.
func ParseState(text string) (State, error) {
	if text == "" {
		return State{Schema: stateSchema}, nil
	}
	var s State
	wrong, err := kjson.UnmarshalStrict([]byte(text), &s)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return State{}, fmt.Errorf("parse autoscaler state: %w", err)
	}
	if s.Schema < stateSchema || s.Schema > leftSchema {
		return State{}, fmt.Errorf("parse autoscaler state: schema %d, want %d to %d", s.Schema, stateSchema, leftSchema)
	}
	for id, g := range s.Groups { // how long to wait follows from these counts
		if g.Failures < 0 || slices.ContainsFunc(g.Useless, func(u Useless) bool { return u.Times < 1 }) {
			return State{}, fmt.Errorf("parse autoscaler state: group %s counts what there cannot be", id)
		}
		g.Failures = min(g.Failures, mostCounted)
		for i := range g.Useless {
			g.Useless[i].Times = min(g.Useless[i].Times, mostCounted)
		}
		s.Groups[id] = g
	}
	return s, nil
}

// NewerState reports that a newer revision wrote a text under StateKey.
func NewerState(text string) bool {
	var s struct {
		Schema int `json:"schema"`
	}
	return json.Unmarshal([]byte(text), &s) == nil && s.Schema > leftSchema
}

// String returns the state as it is stored: a line for every fact, in the lowest schema that has them all.
func (s State) String() string {
	s.Schema = stateSchema
	if slices.ContainsFunc(s.Removals, func(r Removal) bool { return r.Fresh }) {
		s.Schema = freshSchema
	}
	if s.Seen.Left != nil {
		s.Schema = leftSchema
	}
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil { // no field of State can fail to marshal
		return ""
	}
	return string(b) + "\n"
}

// ScaledUp returns when the cluster last grew, or was to; nil if it never did.
func (s State) ScaledUp() *metav1.Time {
	last := s.LastScaleUp
	for _, g := range s.Groups {
		last = g.GrownSince(last)
	}
	return last
}

// GrownSince returns when the group's committed change was decided, if that makes it larger and is later than last; else last.
func (g NodeGroup) GrownSince(last *metav1.Time) *metav1.Time {
	if r := g.Resize; r != nil && r.To > r.From && (last == nil || last.Before(&r.At)) {
		at := r.At
		return &at
	}
	return last
}

// RemovalOf returns the current plan to remove n, and whether there is one: its id is the value of n's taint with
// this key. Whoever drains asks for Drain.
func (s State) RemovalOf(n *corev1.Node, taintKey string) (Removal, bool) {
	t := slices.IndexFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintKey })
	if t < 0 {
		return Removal{}, false
	}
	r := slices.IndexFunc(s.Removals, func(r Removal) bool {
		return r.Plan == n.Spec.Taints[t].Value && r.NodeUID == n.UID
	})
	if r < 0 {
		return Removal{}, false
	}
	return s.Removals[r], true
}
