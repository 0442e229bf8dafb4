// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// Shape is waiting Pods that are the same to the scheduler.
type Shape struct {
	Digest string        // of what the Pods ask for: the same in every scan, not unique
	Pods   []*corev1.Pod // sorted by namespace and name
	key    string        // unique
	demand *demand
}

// shapes groups Pods (SPEC C12). Labels count only as far as anybody's rule looks at them, so that Pods that differ in
// an index alone are one shape.
func (w *World) shapes(pods []*corev1.Pod) []Shape {
	type group struct {
		spec string
		pods []*corev1.Pod
	}
	byAll := map[string]*group{}
	var keys []string
	var buffer []byte // of the key at hand: looking it up makes no copy
	for _, p := range pods {
		buffer = w.appendSpec(buffer[:0], p)
		spec := len(buffer)
		buffer = appendMap(append(buffer, '\n'), p.Labels)
		g, ok := byAll[string(buffer)]
		if !ok {
			key := string(buffer)
			g = &group{spec: key[:spec]}
			byAll[key] = g
			keys = append(keys, key)
		}
		g.pods = append(g.pods, p)
	}
	looks := w.matchers(pods, func(yield func(*corev1.Pod)) {
		for _, k := range keys {
			yield(byAll[k].pods[0])
		}
	})
	merged := map[string]*Shape{}
	var shapes []*Shape
	for _, k := range keys {
		g := byAll[k]
		key := g.spec + "\n" + bits(looks, g.pods[0])
		s, ok := merged[key]
		if !ok {
			sum := sha256.Sum256([]byte(g.spec))
			s = &Shape{Digest: hex.EncodeToString(sum[:5]), key: key, Pods: g.pods}
			merged[key] = s
			shapes = append(shapes, s)
			continue
		}
		s.Pods = append(s.Pods, g.pods...)
	}
	out := make([]Shape, len(shapes))
	for i, s := range shapes {
		slices.SortFunc(s.Pods, byName)
		out[i] = *s
	}
	slices.SortFunc(out, func(a, b Shape) int { return cmp.Compare(a.key, b.key) })
	return out
}

func byName(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// matchers returns every rule that looks at Pods' labels, of the given Pods and of those that run, without repeats.
func (w *World) matchers(pods []*corev1.Pod, each func(yield func(*corev1.Pod))) []matcher {
	seen := map[string]bool{}
	var all []matcher
	add := func(m matcher) {
		if s := m.String(); !seen[s] {
			seen[s] = true
			all = append(all, m)
		}
	}
	for _, t := range w.far {
		add(t.matcher)
	}
	if !slices.ContainsFunc(pods, choosy) {
		return all
	}
	each(func(p *corev1.Pod) {
		for _, t := range slices.Concat(w.nearTerms(p), w.farTerms(p)) {
			add(t.matcher)
		}
		for _, s := range spreadsOf(p) {
			add(s.matcher)
		}
	})
	return all
}

// choosy reports whether a Pod may have rules about other Pods.
func choosy(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return len(p.Spec.TopologySpreadConstraints) > 0 || a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)
}

// bits says which of the matchers match a Pod.
func bits(all []matcher, p *corev1.Pod) string {
	b := make([]byte, len(all))
	for i, m := range all {
		b[i] = '0'
		if m.pod(p) {
			b[i] = '1'
		}
	}
	return string(b)
}

// appendSpec renders everything of a Pod, its labels aside, that the scheduler's answer depends on.
func (w *World) appendSpec(b []byte, p *corev1.Pod) []byte {
	b = append(append(b, p.Namespace...), '\n')
	b = strconv.AppendInt(b, int64(corev1helpers.PodPriority(p)), 10)
	if plain(p) {
		for i := range p.Spec.Containers {
			b = appendRequests(b, p.Spec.Containers[i].Resources.Requests)
		}
	} else {
		b = appendRequests(b, Requests(p))
	}
	if len(p.Spec.NodeSelector) > 0 {
		b = appendMap(append(b, "\nselector "...), p.Spec.NodeSelector)
	}
	if a := p.Spec.Affinity; a != nil {
		b = appendJSON(append(b, "\naffinity "...), a)
	}
	if len(p.Spec.Tolerations) > 0 {
		b = appendJSON(append(b, "\ntolerations "...), p.Spec.Tolerations)
	}
	if len(p.Spec.TopologySpreadConstraints) > 0 {
		b = appendJSON(append(b, "\nspread "...), p.Spec.TopologySpreadConstraints)
	}
	if ports := portsOf(p); len(ports) > 0 {
		b = fmt.Appendf(b, "\nports %v", ports)
	}
	for i := range p.Spec.Volumes {
		if name, own, ok := claimName(p, &p.Spec.Volumes[i]); ok {
			b = append(append(b, "\nclaim "...), w.claimText(p, name, own)...)
		}
	}
	if len(p.Spec.ResourceClaims) > 0 {
		b = append(b, "\ndevices"...)
	}
	if disks := disksOf(p); len(disks) > 0 {
		b = fmt.Appendf(b, "\ndisks %v", disks)
	}
	return b
}

// claimText says what a place depends on of a claim: the class of which a volume is made for its Pod alone, else which it is.
func (w *World) claimText(p *corev1.Pod, name string, own bool) string {
	if w.sole[p.Namespace+"/"+name] {
		if class := w.storage.made(p, name, own); class != "" {
			return "of class " + class
		}
	}
	return name
}

// soleClaims returns the claims that one of the Pods uses and no other one, waiting or running.
func (w *World) soleClaims(waiting []*corev1.Pod) map[string]bool {
	sole := map[string]bool{}
	for _, p := range waiting {
		for i := range p.Spec.Volumes {
			if name, _, ok := claimName(p, &p.Spec.Volumes[i]); ok {
				key := p.Namespace + "/" + name
				_, again := sole[key]
				sole[key] = !again && len(w.claims[key]) == 0
			}
		}
	}
	return sole
}

// appendRequests renders cpu and memory, which almost every list has, without sorting.
func appendRequests(b []byte, list corev1.ResourceList) []byte {
	known := 0
	b = append(b, '\n')
	for _, name := range [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		q, ok := list[name]
		if ok {
			known++
		}
		b = append(strconv.AppendInt(b, Amount(name, q), 10), ' ')
	}
	if len(list) == known {
		return b
	}
	rest := map[string]string{}
	for name, q := range list {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			rest[string(name)] = q.String()
		}
	}
	return appendMap(b, rest)
}

// appendMap renders a map so that equal ones are equal.
func appendMap(b []byte, m map[string]string) []byte {
	var few [8]string
	keys := few[:0]
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		b = append(append(append(append(b, k...), '='), m[k]...), ',')
	}
	return b
}

func appendJSON(b []byte, v any) []byte {
	j, err := json.Marshal(v)
	if err != nil { // API types marshal
		return append(b, err.Error()...)
	}
	return append(b, j...)
}
