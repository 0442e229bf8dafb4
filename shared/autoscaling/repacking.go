// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"fmt"
	"strconv"
	"strings"
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
func ParseRepacking(text string) (r Repacking, err error) {
	r.Payback = 24 * time.Hour
	said := map[string]bool{}
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case said[key]:
			err = fmt.Errorf("says %s twice", key)
		case key == "migration":
			if r.Migration, err = strconv.ParseFloat(value, 64); err == nil && !(r.Migration >= 0 && r.Migration < 1e6) {
				err = fmt.Errorf("a pod costs between 0 and a million")
			}
		case key == "payback":
			if r.Payback, err = time.ParseDuration(value); err == nil && (r.Payback < time.Minute || r.Payback > 365*24*time.Hour) {
				err = fmt.Errorf("the payback is between a minute and a year")
			}
		default:
			err = fmt.Errorf("knows migration=COST and payback=DURATION")
		}
		if err != nil {
			return Repacking{}, fmt.Errorf("%q: %w", word, err)
		}
		said[key] = true
	}
	if !said["migration"] {
		return Repacking{}, fmt.Errorf("%q says no migration=COST", text)
	}
	return r, nil
}

// Worth reports whether a saving per hour makes up for moving so many Pods.
func (r Repacking) Worth(saving float64, pods int) bool {
	return saving > 0 && saving*r.Payback.Hours() > r.Migration*float64(pods)
}
