// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// storedStatus is the text of one.
type storedStatus string

// status is what the ConfigMap tells people, in the form that tools know (SPEC C77). Its times are those of changes:
// a time of the last look would change with every scan.
type status struct {
	Time             metav1.Time   `json:"time"`
	AutoscalerStatus string        `json:"autoscalerStatus"`
	ClusterWide      clusterStatus `json:"clusterWide"`
	NodeGroups       []groupStatus `json:"nodeGroups,omitempty"`
}

type clusterStatus struct {
	Health    healthStatus `json:"health"`
	ScaleUp   condition    `json:"scaleUp"`
	ScaleDown downStatus   `json:"scaleDown"`
}

type groupStatus struct {
	Name      string       `json:"name"`
	Health    healthStatus `json:"health"`
	ScaleUp   upStatus     `json:"scaleUp"`
	ScaleDown downStatus   `json:"scaleDown"`
}

type condition struct {
	Status             string      `json:"status"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

type healthStatus struct {
	condition  `json:",inline"`
	NodeCounts nodeCounts `json:"nodeCounts"`
	Target     *int32     `json:"cloudProviderTarget,omitempty"`
	MinSize    *int32     `json:"minSize,omitempty"`
	MaxSize    *int32     `json:"maxSize,omitempty"`
}

type upStatus struct {
	condition   `json:",inline"`
	BackoffInfo *backoffInfo `json:"backoffInfo,omitempty"`
}

type downStatus struct {
	condition  `json:",inline"`
	Candidates int `json:"candidates,omitempty"`
}

type backoffInfo struct {
	ErrorCode    string      `json:"errorCode"`
	ErrorMessage string      `json:"errorMessage"`
	Until        metav1.Time `json:"until"`
}

type nodeCounts struct {
	Registered struct {
		Total        int           `json:"total"`
		Ready        int           `json:"ready"`
		NotStarted   int           `json:"notStarted"`
		BeingDeleted int           `json:"beingDeleted,omitempty"`
		Unready      unreadyCounts `json:"unready"`
	} `json:"registered"`
	LongUnregistered int `json:"longUnregistered"`
	Unregistered     int `json:"unregistered"`
}

type unreadyCounts struct {
	Total int `json:"total"`
}

// statusText returns the status as it is to be stored: the text found, unless something other than time passed.
func (sc *scan) statusText(found string) string {
	was, _ := machine.Remembered(sc.Records, storedStatus(found), func() (was status, err error) {
		if provider.Expands([]byte(found)) || yaml.Unmarshal([]byte(found), &was) != nil {
			was = status{}
		}
		return was, nil
	})
	is := sc.statusNow()
	carry(&is, was, *sc.now())
	is.Time = was.Time
	if is.String() == was.String() {
		return found
	}
	is.Time = *sc.now()
	return is.String()
}

// String renders the status as YAML with a line for every fact: what changed is easy to see.
func (s status) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "time: %s\nautoscalerStatus: %s\nclusterWide:\n", flow(s.Time), s.AutoscalerStatus)
	c := s.ClusterWide
	fmt.Fprintf(&b, "  health: %s\n  scaleUp: %s\n  scaleDown: %s\nnodeGroups:\n", flow(c.Health), flow(c.ScaleUp), flow(c.ScaleDown))
	for _, g := range s.NodeGroups {
		fmt.Fprintf(&b, "- name: %s\n  health: %s\n  scaleUp: %s\n  scaleDown: %s\n", g.Name, flow(g.Health), flow(g.ScaleUp), flow(g.ScaleDown))
	}
	return b.String()
}

// flow renders a value as JSON, which is YAML on one line.
func flow(v any) string {
	j, err := json.Marshal(v)
	if err != nil { // no field can fail to marshal
		return ""
	}
	return string(j)
}

// carry keeps the transition time of whatever did not change.
func carry(is *status, was status, now metav1.Time) {
	keep := func(is *condition, was condition) {
		if is.LastTransitionTime = was.LastTransitionTime; is.Status != was.Status || was.LastTransitionTime.IsZero() {
			is.LastTransitionTime = now
		}
	}
	keep(&is.ClusterWide.Health.condition, was.ClusterWide.Health.condition)
	keep(&is.ClusterWide.ScaleUp, was.ClusterWide.ScaleUp)
	keep(&is.ClusterWide.ScaleDown.condition, was.ClusterWide.ScaleDown.condition)
	before := map[string]groupStatus{}
	for _, g := range was.NodeGroups {
		before[g.Name] = g
	}
	for i := range is.NodeGroups {
		g, b := &is.NodeGroups[i], before[is.NodeGroups[i].Name]
		keep(&g.Health.condition, b.Health.condition)
		keep(&g.ScaleUp.condition, b.ScaleUp.condition)
		keep(&g.ScaleDown.condition, b.ScaleDown.condition)
	}
}

// statusNow is the status without times.
func (sc *scan) statusNow() status {
	s := status{AutoscalerStatus: "Running"}
	healthy := sc.healthyNow()
	up, candidates := word(healthy, "NoActivity", "Unhealthy"), 0
	for _, g := range sc.groups {
		gs := sc.statusOf(g, healthy)
		if gs.ScaleUp.Status == "InProgress" {
			up = "InProgress"
		}
		candidates += gs.ScaleDown.Candidates
		s.NodeGroups = append(s.NodeGroups, gs)
	}
	s.ClusterWide.Health.Status = word(healthy, "Healthy", "Unhealthy")
	s.ClusterWide.Health.NodeCounts = sc.allNodes()
	s.ClusterWide.ScaleUp.Status = up
	s.ClusterWide.ScaleDown = downStatus{condition{Status: word(candidates > 0, "CandidatesPresent", "NoCandidates")}, candidates}
	return s
}

func (sc *scan) allNodes() (c nodeCounts) {
	for _, n := range sc.Nodes {
		c.Registered.Total++
		switch {
		case sc.leaves(n):
			c.Registered.BeingDeleted++
		case sc.ready(n):
			c.Registered.Ready++
		case sc.starting(n):
			c.Registered.NotStarted++
		default:
			c.Registered.Unready.Total++
		}
	}
	for _, g := range sc.groups {
		c.LongUnregistered += int(g.late + g.gone)
		c.Unregistered += g.unregistered()
	}
	return c
}

// unregistered counts the Machines that may still get a Node.
func (g *group) unregistered() int {
	return int(max(0, g.awaited()-g.starting))
}

// ill reports that so many Nodes of a group that should be ready are not that it is not safe to grow (SPEC C4). Those
// that have not come, in time or not, or because their Machine failed, are not among them (C46): the group is backed off for these.
func (g *group) ill() bool {
	missing := g.unready + g.fallen
	return missing > toleratedUnready && 100*missing > toleratedUnreadyPart*g.target
}

// statusOf is the status of a group. Nodes that are on their way come, however ill the others are; then it is said whether the cluster
// and the group are well enough for it to grow, before anything else that keeps it from growing.
func (sc *scan) statusOf(g *group, healthy bool) groupStatus {
	s := groupStatus{Name: g.id}
	n := sc.state.Groups[g.id]
	s.Health.Status = word(g.ill(), "Unhealthy", "Healthy")
	c := &s.Health.NodeCounts
	c.Registered.Ready, c.Registered.NotStarted, c.Registered.Unready.Total = int(g.ready), int(g.starting), int(g.unready)
	for _, m := range g.members {
		if m.node != nil {
			c.Registered.Total++
			if m.leaving {
				c.Registered.BeingDeleted++
			}
		}
		if _, counted := sc.state.Unneeded[uidOf(m.node)]; counted {
			s.ScaleDown.Candidates++
		}
	}
	c.LongUnregistered, c.Unregistered = int(g.late+g.gone), g.unregistered()
	s.Health.Target, s.Health.MinSize, s.Health.MaxSize = &g.target, &g.min, &g.max
	s.ScaleDown.Status = word(s.ScaleDown.Candidates > 0, "CandidatesPresent", "NoCandidates")
	switch {
	case n.Request != nil && !n.Request.TimedOut && !sc.backedOff(g):
		s.ScaleUp.Status = "InProgress"
	case !healthy, g.ill():
		s.ScaleUp.Status = "Unhealthy"
	case sc.backedOff(g):
		s.ScaleUp.Status = "Backoff"
		s.ScaleUp.BackoffInfo = &backoffInfo{ErrorCode: "other", ErrorMessage: clip(n.Reason), Until: *n.BackoffUntil}
	default:
		s.ScaleUp.Status = "NoActivity"
	}
	return s
}

func word(fact bool, yes, no string) string {
	if fact {
		return yes
	}
	return no
}

func uidOf(n *corev1.Node) types.UID {
	if n == nil {
		return ""
	}
	return n.UID
}
