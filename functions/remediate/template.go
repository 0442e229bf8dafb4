// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// ofSets begins the keys of templates among what was seen: a former version, which knows no such keys, can read the record and leaves them
// out. A field of their own it could not read.
const ofSets = "machineset/"

// ofSet is where a record has the template of the set of this UID.
func ofSet(set types.UID) types.UID { return ofSets + set }

// isOfSet reports whether a record has a template there.
func isOfSet(key types.UID) bool { return strings.HasPrefix(string(key), ofSets) }

// template returns which template a set has, as far as it is known, and since when: the zero time where nobody saw it have another one.
// Only two looks at the template tell that people mended it: admission fills in Machines otherwise than templates, so that a Machine is
// like its template neither before nor after.
func (c *check) template(set types.UID) sighting {
	last, known := c.record.Seen[ofSet(set)]
	for _, s := range c.MachineSets {
		if s.UID != set {
			continue
		}
		switch of := machine.TemplateOf(s); {
		case !known:
			return sighting{What: of}
		case of != last.What:
			return sighting{What: of, At: metav1.NewTime(c.Now.Truncate(time.Second))}
		}
	}
	return last
}

// outlived reports whether m was made before its set's template became what it is now.
func (c *check) outlived(m *machine.Machine) bool {
	owner := machine.OwningSet(m)
	return owner != nil && m.CreationTimestamp.Time.Before(c.template(owner.UID).At.Time)
}

// another reports whether a set has another template by now than it had at the last look.
func (c *check) another(set types.UID) bool {
	last, known := c.record.Seen[ofSet(set)]
	return known && c.template(set).What != last.What
}

// keepTemplate adds to seen the template of a set, as far as it is known.
func (c *check) keepTemplate(seen map[types.UID]sighting, set types.UID) {
	if of := c.template(set); of.What != "" {
		seen[ofSet(set)] = of
	}
}

// templates adds to next the templates of sets that failures are counted of, and of those that made what can never work, for as long as that is
// there, or a Machine that may yet turn out to be so.
func (c *check) templates(next record) {
	for set := range next.Failing {
		c.keepTemplate(next.Seen, set)
	}
	for _, t := range c.targets {
		owner := machine.OwningSet(t.m)
		if owner == nil {
			continue
		}
		_, known := c.record.Seen[ofSet(owner.UID)]
		if !hopeless(t.m) && (!known || t.n != nil || t.m.Status.NodeRef != nil) {
			continue
		}
		c.keepTemplate(next.Seen, owner.UID)
	}
}
