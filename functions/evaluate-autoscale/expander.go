// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var (
	prioritiesQuery = snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapPriority)
	pricesQuery     = snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapPrices)
)

const (
	prioritiesKey = "priorities" // SPEC B113
	pricesKey     = "prices"

	// The packing takes what is cheapest. An expander that ranks groups instead of pricing them multiplies the prices of
	// every rank but the first, so that a lower rank is opened only for what no higher one takes.
	rankFactor    = 1000 // at most, and at least two: how often the dearest of a rank goes into the cheapest of the next
	mostRanks     = 20
	highestPrice  = 100_000_000 // before that
	highestRanked = 1e15        // after that: as many as there may be Nodes add up without overflow
)

// expand gives every option the price by which the packing chooses, so that it chooses as the expanders say, each
// narrowing the choice of those before (SPEC B106, C28). All groups are planned at once: an expander orders them instead
// of picking one. What is still equal is decided by name, never by chance.
func (sc *scan) expand(options []*option) {
	var above, below [][]int64 // ranks that come before the price, and that decide between equal prices
	var preferred [][]int64    // of those before the price, what people prefer: nothing that a lot was drawn for
	var base []int64
	for _, e := range sc.settings.Expanders {
		var score []int64
		switch e {
		case autoscaling.Priority:
			score = sc.byPriority(options)
			sc.prefer(options, score)
			if score != nil && base == nil && len(above) == len(preferred) {
				preferred = append(preferred, score)
			}
		case autoscaling.Random:
			score = sc.byChance(options)
		case autoscaling.Price:
			score = sc.byPrice(options)
			sc.prefer(options, score)
		case autoscaling.LeastWaste:
			score = sc.bySize(options)
		}
		priced := e == autoscaling.Price || e == autoscaling.LeastWaste
		switch {
		case score == nil:
		case base != nil:
			below = append(below, score)
		case priced:
			base = score
		default:
			above = append(above, score)
		}
	}
	if base == nil {
		base = sc.bySize(options)
	}
	sc.ranked = len(above) > 0
	first := ranks(above, len(options))
	if most := slices.Max(append(first, 0)); most > mostRanks && slices.Contains(sc.settings.Expanders, autoscaling.Priority) {
		sc.notes = append(sc.notes, plan.Log(fmt.Sprintf("Priority expander: of %d ranks of groups only the first %d are kept apart, the others count as one", most+1, mostRanks)))
	}
	combine(options, first, base, ranks(below, len(options)))
	for i, rank := range ranks(preferred, len(options)) {
		options[i].rank = rank
	}
}

// prefer keeps what an expander says by which people prefer one group to another: where they do, nothing is balanced. A
// little more or less size is no preference, and neither is chance.
func (sc *scan) prefer(options []*option, score []int64) {
	for i := range score {
		options[i].score = append(options[i].score, score[i])
	}
}

// combine makes one price of a rank, a price and a rank among equal prices.
func combine(options []*option, above, base, below []int64) {
	steps, ties := min(slices.Max(append(above, 0)), mostRanks), slices.Max(append(below, 0))+1
	shrink := int64(1)
	if steps > 0 {
		shrink = max(1, slices.Max(append(base, 1))*ties/highestPrice)
	}
	lowest, highest := slices.Repeat([]int64{math.MaxInt64}, int(steps)+1), make([]int64, steps+1)
	for i, o := range options {
		r := min(above[i], steps)
		o.offer.Price = max(1, (base[i]*ties+below[i])/shrink)
		lowest[r], highest[r] = min(lowest[r], o.offer.Price), max(highest[r], o.offer.Price)
	}
	times := factors(lowest, highest)
	for i, o := range options {
		o.offer.Price *= times[min(above[i], steps)]
	}
}

// factors returns by what the prices of every rank are multiplied, given the lowest and the highest of each: so that the
// lowest of a rank is above the highest of the rank before, as far as there is room for it.
func factors(lowest, highest []int64) []int64 {
	times := slices.Repeat([]int64{1}, len(lowest))
	if len(times) == 1 { // nothing is kept apart, whatever it costs
		return times
	}
	gap := func(r int) float64 { return max(1, float64(highest[r-1])/float64(lowest[r])) }
	gaps := 1.0
	for r := range times[1:] {
		gaps *= gap(r + 1)
	}
	room, part, factor := highestRanked/float64(slices.Max(append(highest, 1))), 1.0, 0.0
	for ; factor < 2; part /= 2 { // of too many ranks too far apart the gaps are closed in part
		factor = min(rankFactor, math.Pow(room/math.Pow(gaps, part), 1/float64(len(times)-1)))
		for r := 1; r < len(times); r++ {
			times[r] = times[r-1] * int64(factor*math.Pow(gap(r), part))
		}
	}
	return times
}

// ranks numbers n options from 0, those with the same scores alike.
func ranks(scores [][]int64, n int) []int64 {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	compare := func(a, b int) int {
		for _, s := range scores {
			if c := cmp.Compare(s[a], s[b]); c != 0 {
				return c
			}
		}
		return 0
	}
	slices.SortStableFunc(order, compare)
	out := make([]int64, n)
	for k := 1; k < n; k++ {
		out[order[k]] = out[order[k-1]]
		if compare(order[k-1], order[k]) != 0 {
			out[order[k]]++
		}
	}
	return out
}

// bySize prices by what a Node has: the least waste is the least that is added (SPEC C29). A core is worth four GiB; a
// GPU more than any Node without one.
func (sc *scan) bySize(options []*option) []int64 {
	out := make([]int64, len(options))
	for i, o := range options {
		if !o.known { // one that grows to its minimum all the same
			continue
		}
		c := o.template.Status.Allocatable
		_, gpus := sc.gpus.In(c)
		out[i] = max(1, scheduling.Amount(corev1.ResourceCPU, *c.Cpu())+scheduling.Amount(corev1.ResourceMemory, *c.Memory())>>20/4+min(gpus, 1000)*1_000_000)
	}
	return out
}

// byPrice prices by money. It has no say unless every option has a price: a price cannot be compared with none.
func (sc *scan) byPrice(options []*option) []int64 {
	out, unknown := sc.pricesOf(options)
	if unknown != nil && asksFor(sc.ClusterAutoscalers, autoscaling.Price) {
		sc.notes = append(sc.notes, plan.Log("Price expander: the price of "+unknown.id+" is not known, prices are left out"))
	}
	return out
}

// pricesOf returns the price of every option, in thousandths of a cent per hour, or the first one that has none.
func (sc *scan) pricesOf(options []*option) (out []int64, unknown *option) {
	sc.readPrices()
	out = make([]int64, 0, len(options))
	for _, o := range options {
		price := sc.priceOf(o.group)
		if price == 0 {
			return nil, o
		}
		out = append(out, price)
	}
	return out, nil
}

// priceOf returns what a Node of a group costs per hour, in thousandths of a cent: what the set says, else what the
// table says of the group, the set or the instance type; 0 if nobody does.
func priceOf(g *group, table map[string]*float64) int64 {
	if price := pricedBy(g.set); price > 0 {
		return price
	}
	return tablePrice(g, table)
}

// pricedBy returns what a set itself says that its Nodes cost; 0 if that is no price.
func pricedBy(set *machine.MachineSet) int64 {
	f, err := strconv.ParseFloat(set.Annotations[machine.AnnotationPrice], 64)
	if err != nil {
		return 0
	}
	return milliCents(f)
}

// tablePrice returns what a table says that a Node of a group costs; 0 if it says nothing.
func tablePrice(g *group, table map[string]*float64) int64 {
	if len(table) == 0 {
		return 0
	}
	for _, key := range append([]string{g.id, g.set.Name, g.typeOfTemplate()}, g.typesOfMachines()...) {
		if f := table[key]; f != nil && key != "" { // one that is left blank is none
			return milliCents(*f)
		}
	}
	return 0
}

// milliCents returns a price in thousandths of a cent; of what costs nothing it is one, as 0 is for what has no price.
func milliCents(perHour float64) int64 {
	if !(perHour >= 0 && perHour < 1e6) {
		return 0
	}
	return max(1, int64(math.Round(perHour*1e5)))
}

// typeOfTemplate returns the instance type that the group's Nodes are labeled with, unless that is of those that it made before its set
// was given another one.
func (g *group) typeOfTemplate() string {
	if !g.known {
		return ""
	}
	t := g.template.Labels[corev1.LabelInstanceTypeStable]
	for _, m := range g.members { // all with this label are of one type
		if m.node != nil && m.node.Labels[corev1.LabelInstanceTypeStable] == t {
			if scheduling.NextType(g.set, m.machine) != machine.Word(m.machine, machine.LabelInstanceType) {
				return ""
			}
			break
		}
	}
	return t
}

// typesOfMachines returns the instance type of the group's next Machine, as far as those that it has tell, in its cloud's words and as
// its label will say (SPEC B1).
func (g *group) typesOfMachines() []string {
	for _, m := range g.members {
		if t := scheduling.NextType(g.set, m.machine); t != "" {
			return []string{t, machine.LabelValue(t)}
		}
	}
	return nil
}

// readPrices makes the table of prices known.
func (sc *scan) readPrices() {
	if sc.prices == nil {
		sc.prices = map[string]*float64{}
		maps.Copy(sc.prices, sc.priceTable())
	}
}

// priceTable reads prices for sets whose cloud tells none. One that cannot be read prices nothing.
func (sc *scan) priceTable() map[string]*float64 {
	cm := sc.ConfigMap(machine.Namespace, machine.ConfigMapPrices)
	if cm == nil {
		return nil
	}
	var table map[string]*float64
	if err := provider.ReadYAML(cm.Data[pricesKey], &table); err != nil {
		sc.notes = append(sc.notes, plan.Warning(cm, "PriceConfigMapInvalid", fmt.Sprintf("wrong configuration in prices: %v", err)).From(source))
		return nil
	}
	return table
}

// byPriority ranks by the highest priority that the ConfigMap has for a group (SPEC B113). Groups that it does not name
// come last; if it names none, it has no say.
func (sc *scan) byPriority(options []*option) []int64 {
	cm := sc.ConfigMap(machine.Namespace, machine.ConfigMapPriority)
	if cm == nil {
		sc.notes = append(sc.notes, plan.Log("Priority expander: there is no configmap/"+machine.ConfigMapPriority))
		return nil
	}
	priorities, err := parsePriorities(cm.Data[prioritiesKey])
	if err != nil {
		sc.notes = append(sc.notes, plan.Warning(cm, "PriorityConfigMapInvalid", fmt.Sprintf("wrong configuration in %s: %v", prioritiesKey, err)).From(source))
		return nil
	}
	out := make([]int64, len(options))
	matched := false
	for i, o := range options {
		if out[i] = rankOf(o.id, priorities); out[i] < math.MaxInt64 {
			matched = true
		} else {
			sc.notes = append(sc.notes, plan.Warning(cm, "PriorityConfigMapNotMatchedGroup",
				fmt.Sprintf("Priority expander: node group %s not found in priority expander configuration. The group is used last.", o.id)).From(source))
		}
	}
	if !matched {
		return nil
	}
	return out
}

// rankOf returns the rank of a group's highest priority, that of a group without one after all others.
func rankOf(id string, priorities []prioritized) int64 {
	for _, p := range priorities {
		if p.of.MatchString(id) {
			return -int64(p.priority)
		}
	}
	return math.MaxInt64
}

// prioritized is a pattern of group ids with their priority.
type prioritized struct {
	priority int
	of       *regexp.Regexp
}

// parsePriorities reads a map from priority to patterns, the highest first.
func parsePriorities(text string) (all []prioritized, err error) {
	var table map[int][]string
	if err := provider.ReadYAML(text, &table); err != nil {
		return nil, err
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(table))) {
		for _, pattern := range table[priority] {
			of, err := regexp.Compile(pattern)
			if err != nil {
				return nil, fmt.Errorf("priority %d: %w", priority, err)
			}
			all = append(all, prioritized{priority, of})
		}
	}
	return all, nil
}

// byChance shuffles the groups, in another way after every scale-up. Whoever decides on the same state shuffles alike:
// two scans at a time must want the same.
func (sc *scan) byChance(options []*option) []int64 {
	out := make([]int64, len(options))
	for i, o := range options {
		h := fnv.New32a()
		fmt.Fprintln(h, o.id, sc.before.LastScaleUp)
		out[i] = int64(h.Sum32())
	}
	return out
}

// wantsPrices reports whether an expander, listed or by default, compares sets of which some do not say themselves what
// they cost.
func wantsPrices(s snapshot.Snapshot, ca *autoscaling.ClusterAutoscaler) bool {
	resized, silent := 0, false
	for _, set := range s.MachineSets {
		if _, _, ok := boundsOf(s, set); ok {
			resized, silent = resized+1, silent || pricedBy(set) == 0
		}
	}
	listed := len(ca.Spec.Expanders) > 0
	return slices.Contains(autoscaling.Effective(ca.Spec).Expanders, autoscaling.Price) && (listed || resized > 1 && silent)
}

// asksFor reports whether the settings list an expander.
func asksFor(all []*autoscaling.ClusterAutoscaler, e autoscaling.Expander) bool {
	return slices.ContainsFunc(all, func(ca *autoscaling.ClusterAutoscaler) bool {
		return ca.Name == autoscaling.Name && slices.Contains(ca.Spec.Expanders, e)
	})
}
