// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OptionsPrefix begins the names of annotations by which a MachineSet has settings of its own (SPEC B67).
const OptionsPrefix = "machine.openshift.io/autoscaling-options-"

const (
	unreadyTime = 20 * time.Minute // SPEC C58
	startupTime = 15 * time.Minute // SPEC C3
	// gpuThreshold is a cluster's, which has no setting for it (SPEC C55).
	gpuThreshold = 0.5
)

// Options are the settings that a group may have of its own.
type Options struct {
	UtilizationThreshold    float64
	GPUUtilizationThreshold float64       // of Nodes with GPUs, of which only those count
	UnneededTime            time.Duration // before a Node that is ready goes
	UnreadyTime             time.Duration // before one that is not goes
	MaxNodeProvisionTime    time.Duration // from the Machine's creation to its Node
	MaxNodeStartupTime      time.Duration // from the Node's creation until it has to be ready
}

// Options returns what holds for a group whose set carries these annotations. What they do not say, or say in a way that
// nobody can read, is as in s; of the latter wrong tells, sorted by name.
func (s Settings) Options(annotations map[string]string) (o Options, wrong []string) {
	o = Options{
		UtilizationThreshold: s.UtilizationThreshold, GPUUtilizationThreshold: gpuThreshold, UnneededTime: s.UnneededTime,
		UnreadyTime: unreadyTime, MaxNodeProvisionTime: s.MaxNodeProvisionTime, MaxNodeStartupTime: startupTime,
	}
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		option, ok := strings.CutPrefix(name, OptionsPrefix)
		if !ok {
			continue
		}
		if err := o.set(option, annotations[name]); err != nil {
			wrong = append(wrong, fmt.Sprintf("metadata.annotations[%s]: %v", name, err))
		}
	}
	return o, wrong
}

// set reads one option. Of two that mean the same the later name in the alphabet counts; there are none.
func (o *Options) set(option, value string) error {
	switch option {
	case "scaledownutilizationthreshold":
		return fraction(&o.UtilizationThreshold, value)
	case "scaledowngpuutilizationthreshold":
		return fraction(&o.GPUUtilizationThreshold, value)
	case "scaledownunneededtime":
		return span(&o.UnneededTime, value)
	case "scaledownunreadytime":
		return span(&o.UnreadyTime, value)
	case "maxnodeprovisiontime":
		return span(&o.MaxNodeProvisionTime, value)
	case "maxnodestartuptime":
		return span(&o.MaxNodeStartupTime, value)
	}
	return fmt.Errorf("there is no such option")
}

func fraction(into *float64, value string) error {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f >= 0 && f <= 1) { // no number is not between either
		return fmt.Errorf("%q must be a number from 0 to 1", value)
	}
	*into = f
	return nil
}

func span(into *time.Duration, value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return fmt.Errorf("%q must be a duration like 10m", value)
	}
	*into = d
	return nil
}
