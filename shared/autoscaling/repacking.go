// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"fmt"
	"strconv"
	"time"
)

// RepackAnnotation on the ClusterAutoscaler lets Nodes be replaced by cheaper ones, and emptied although they are used,
// where that is worth it (SPEC W10, W13, D32). Without it nothing of that kind is done.
//
//	migration=0.01 payback=24h
//
// Moving one Pod costs so much, in the unit of the prices; the saving has to make up for all Pods within the payback.
const RepackAnnotation = "machine.openshift.io/repack"

// Repacking says what replacing a Node has to bring.
type Repacking struct {
	Migration float64 // cost of moving one Pod
	Payback   time.Duration
}

// ParseRepacking reads the value of a RepackAnnotation.
func ParseRepacking(text string) (Repacking, error) {
	r := Repacking{Payback: 24 * time.Hour}
	said := map[string]bool{}
	err := pairs(text, func(key, value string) error {
		if said[key] {
			return fmt.Errorf("says %s twice", key)
		}
		said[key] = true
		return r.set(key, value)
	})
	switch {
	case err != nil:
		return Repacking{}, err
	case !said["migration"]:
		return Repacking{}, fmt.Errorf("%q says no migration=COST", text)
	}
	return r, nil
}

func (r *Repacking) set(key, value string) (err error) {
	switch key {
	case "migration":
		if r.Migration, err = strconv.ParseFloat(value, 64); err != nil || !(r.Migration >= 0 && r.Migration < 1e6) {
			return fmt.Errorf("%q is no cost between 0 and a million", value)
		}
	case "payback":
		if r.Payback, err = time.ParseDuration(value); err != nil || r.Payback < time.Minute || r.Payback > 365*24*time.Hour {
			return fmt.Errorf("%q is no time between a minute and a year", value)
		}
	default:
		return fmt.Errorf("%q is neither migration nor payback", key)
	}
	return nil
}

// Worth reports whether a saving per hour makes up for moving so many Pods.
func (r Repacking) Worth(saving float64, pods int) bool {
	return saving > 0 && saving*r.Payback.Hours() > r.Migration*float64(pods)
}
