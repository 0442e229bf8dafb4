// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	what, on, labels := strings.Cut(strings.Join(words[2:], " "), " on ")
	if words[len(words)-1] == "on" || words[2] == "on" || labels && strings.TrimSpace(on) == "" {
		return h, errTooLittle
	}
	if h.Requests, err = amounts(what); err != nil || !labels {
		return h, err
	}
	h.On = map[string]string{}
	return h, pairs(on, func(key, value string) error {
		h.On[key] = value
		return nil
	})
}

func amounts(text string) (corev1.ResourceList, error) {
	all := corev1.ResourceList{}
	return all, pairs(text, func(key, value string) error {
		q, err := ParseQuantity(value)
		if err != nil || q.Sign() <= 0 {
			return fmt.Errorf("%q is no amount", key+"="+value)
		}
		all[corev1.ResourceName(key)] = q
		return nil
	})
}

var errTooLittle = errors.New("says too little")

// pairs calls f with every NAME=VALUE of a text.
func pairs(text string, f func(key, value string) error) error {
	for _, word := range strings.Fields(text) {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return fmt.Errorf("%q is not NAME=VALUE", word)
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}
