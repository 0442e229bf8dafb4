// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Tolerated reports whether any of the tolerations tolerates the taint.
func Tolerated(tolerations []corev1.Toleration, t corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(x corev1.Toleration) bool { return tolerates(x, t) })
}

func tolerates(x corev1.Toleration, t corev1.Taint) bool {
	if x.Effect != "" && x.Effect != t.Effect || x.Key != "" && x.Key != t.Key {
		return false
	}
	switch x.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return x.Value == t.Value
	case corev1.TolerationOpGt, corev1.TolerationOpLt:
		want, ok := integer(x.Value)
		have, is := integer(t.Value)
		return ok && is && (x.Operator == corev1.TolerationOpGt) == (have > want) && have != want
	}
	return false
}

// integer reads a number that is written as one writes it: without zeros before it, or a plus.
func integer(s string) (n int64, ok bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// forbids returns the first taint that keeps a Pod with these tolerations away.
func forbids(taints []corev1.Taint, tolerations []corev1.Toleration) (corev1.Taint, bool) {
	for _, t := range taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !Tolerated(tolerations, t) {
			return t, true
		}
	}
	return corev1.Taint{}, false
}

// matcher selects Pods by namespace and labels, as a term of affinity or a spread constraint does.
type matcher struct {
	namespaces []string // sorted
	everywhere bool     // in any namespace
	selector   labels.Selector
	vague      bool // some namespaces may be in it that are not meant: their labels decide, and are not known
}

func (m matcher) matches(namespace string, set labels.Set) bool {
	if !m.everywhere && !slices.Contains(m.namespaces, namespace) {
		return false
	}
	return m.selector.Matches(set)
}

func (m matcher) pod(p *corev1.Pod) bool { return m.matches(p.Namespace, p.Labels) }

// String is the same for matchers that match the same.
func (m matcher) String() string {
	return strings.Join(m.namespaces, ",") + "|" + strconv.FormatBool(m.everywhere) + "|" + m.selector.String()
}

// selectorOf compiles a label selector. One that does not parse matches nothing, as in the scheduler.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// term is one required term of pod affinity or anti-affinity.
type term struct {
	matcher
	key string // topology key
}

// wide reports whether the term is about domains that are larger than a host.
func (t term) wide() bool { return t.key != corev1.LabelHostname }

// termsOf compiles terms of a Pod: they mean the namespaces that they name and those that they select, else the Pod's.
// For a Pod that waits, the scheduler takes a selector that wants no label to be there for one of all namespaces.
func (s spaces) termsOf(p *corev1.Pod, list []corev1.PodAffinityTerm, waits bool) []term {
	var terms []term
	for i := range list {
		t := &list[i]
		m := matcher{selector: selectorOf(t.LabelSelector), namespaces: slices.Clone(t.Namespaces)}
		chosen := selectorOf(t.NamespaceSelector)
		switch {
		case t.NamespaceSelector == nil && len(m.namespaces) == 0:
			m.namespaces = []string{p.Namespace}
		case t.NamespaceSelector == nil:
		case chosen.Empty(), waits && chosen.Matches(labels.Set{}):
			m.everywhere = true
		case s == nil:
			m.everywhere, m.vague = true, true
		default:
			m.namespaces = append(m.namespaces, s.selected(chosen)...)
		}
		slices.Sort(m.namespaces)
		terms = append(terms, term{matcher: m, key: t.TopologyKey})
	}
	return terms
}

// nearTerms and farTerms return the required terms of a Pod that waits; preferred ones decide nothing.
func (w *World) nearTerms(p *corev1.Pod) []term {
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		return w.spaces.termsOf(p, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, true)
	}
	return nil
}

func (w *World) farTerms(p *corev1.Pod) []term { return w.spaces.termsOf(p, apartTerms(p), true) }

// standing returns the terms that a Pod that runs holds against others.
func (w *World) standing(p *corev1.Pod) []term { return w.spaces.termsOf(p, apartTerms(p), false) }

func apartTerms(p *corev1.Pod) []corev1.PodAffinityTerm {
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// spread is one required topology spread constraint.
type spread struct {
	matcher
	key        string
	maxSkew    int
	minDomains int
	byAffinity bool // only Nodes that the Pod's node affinity selects count
	byTaints   bool // only Nodes whose taints the Pod tolerates count
	selfCounts bool // the Pod counts for its own constraint
}

func (s *spread) overHosts() bool { return s.key == corev1.LabelHostname }

func spreadsOf(p *corev1.Pod) []spread {
	var all []spread
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		s := spread{
			matcher:    matcher{namespaces: []string{p.Namespace}, selector: withKeys(selectorOf(c.LabelSelector), c.MatchLabelKeys, p.Labels)},
			key:        c.TopologyKey,
			maxSkew:    int(c.MaxSkew),
			minDomains: 1,
			byAffinity: c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor,
			byTaints:   c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
		}
		if c.MinDomains != nil {
			s.minDomains = int(*c.MinDomains)
		}
		s.selfCounts = s.pod(p)
		all = append(all, s)
	}
	return all
}

// withKeys narrows a selector to the values that the Pod has for some label keys.
func withKeys(s labels.Selector, keys []string, set labels.Set) labels.Selector {
	if len(keys) == 0 {
		return s
	}
	narrow := labels.Set{}
	for _, k := range keys {
		if v, ok := set[k]; ok {
			narrow[k] = v
		}
	}
	more, _ := labels.SelectorFromSet(narrow).Requirements()
	return s.Add(more...)
}

// port is a port of the host that a Pod takes.
type port struct {
	ip       string
	protocol corev1.Protocol
	number   int32
}

func portsOf(p *corev1.Pod) []port {
	var all []port
	add := func(c *corev1.Container) {
		for i := range c.Ports {
			if n := c.Ports[i].HostPort; n > 0 {
				all = append(all, port{ip: anyIP(c.Ports[i].HostIP), protocol: protocolOf(c.Ports[i].Protocol), number: n})
			}
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	return all
}

func anyIP(ip string) string {
	if ip == "" {
		return "0.0.0.0"
	}
	return ip
}

func protocolOf(p corev1.Protocol) corev1.Protocol {
	if p == "" {
		return corev1.ProtocolTCP
	}
	return p
}

// clash reports whether two lists of ports take the same port of the same address.
func clash(a, b []port) bool {
	for _, x := range a {
		for _, y := range b {
			if x.number == y.number && x.protocol == y.protocol && (x.ip == y.ip || x.ip == "0.0.0.0" || y.ip == "0.0.0.0") {
				return true
			}
		}
	}
	return false
}
