// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// HeadroomAnnotation on the ClusterAutoscaler keeps room free for Pods that are still to come (SPEC W7, C83). One kind of
// room after the other, separated by semicolons or new lines:
//
//	3 of cpu=1 memory=2Gi; 1 of cpu=8 nvidia.com/gpu=1 on topology.kubernetes.io/zone=a
//
// The room is for so many Pods that ask for this, on Nodes with these labels. Every Pod is served before it.
const HeadroomAnnotation = "machine.openshift.io/headroom"

// maxHeadroom bounds the places that are kept free.
const maxHeadroom = 10_000

// Headroom is room for Count Pods.
type Headroom struct {
	Count    int
	Requests corev1.ResourceList
	On       map[string]string // labels of Nodes; nil: anywhere
}

// ParseHeadroom reads the value of a HeadroomAnnotation. Its error names the kind of room.
func ParseHeadroom(text string) (all []Headroom, err error) {
	total := 0
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if strings.TrimSpace(part) == "" {
			continue
		}
		h, err := parseRoom(strings.Fields(part))
		if err != nil {
			return nil, fmt.Errorf("headroom %q: %w", strings.TrimSpace(part), err)
		}
		if total += h.Count; total > maxHeadroom {
			return nil, fmt.Errorf("headroom for more than %d pods", maxHeadroom)
		}
		all = append(all, h)
	}
	return all, nil
}

func parseRoom(words []string) (h Headroom, err error) {
	if len(words) < 3 || words[1] != "of" {
		return h, errors.New(`must read "COUNT of cpu=1 memory=2Gi", with "on label=value" where it matters`)
	}
	if h.Count, err = strconv.Atoi(words[0]); err != nil || h.Count < 1 || h.Count > maxHeadroom {
		return h, fmt.Errorf("%q is no number between 1 and %d", words[0], maxHeadroom)
	}
	h.Requests = corev1.ResourceList{}
	labels := false
	for _, word := range words[2:] {
		if word == "on" && !labels {
			labels, h.On = true, map[string]string{}
			continue
		}
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return h, fmt.Errorf("%q is not NAME=VALUE", word)
		}
		if labels {
			h.On[key] = value
			continue
		}
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Sign() <= 0 {
			return h, fmt.Errorf("%q is no amount", word)
		}
		h.Requests[corev1.ResourceName(key)] = q
	}
	if len(h.Requests) == 0 || labels && len(h.On) == 0 {
		return h, errors.New("says too little")
	}
	return h, nil
}
