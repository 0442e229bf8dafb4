// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	// maxMessage is what clients of Kubernetes agree an Event's message may take.
	maxMessage = 1024
	// maxEventName leaves room for the separator and the hash in the 253 characters of a name.
	maxEventName = 253 - 1 - 2*eventHash
	eventHash    = 8
)

// Event returns the Kubernetes Event that records n for the first time at now, told by component unless n has a source
// of its own. Its name is a function of what is told about which object, so that every process that tells the same
// finds the same Event to count up: kubectl describe shows "x25 over 93s" (SPEC S23). The Event of an object without
// a namespace is in the namespace default.
func Event(n plan.Note, component string, now time.Time) (*corev1.Event, error) {
	r, ok := plan.ResourceOf(n.Object.Kind)
	if !ok || n.Object.Name == "" {
		return nil, fmt.Errorf("tell %q: about no object", n.Reason)
	}
	source := cmp.Or(n.Source, component)
	at := metav1.NewTime(now.Truncate(time.Second))
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(n.Object.Namespace, metav1.NamespaceDefault), Name: eventName(n, source)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: r.Group.String(), Kind: r.GVK().Kind,
			Namespace: n.Object.Namespace, Name: n.Object.Name, UID: n.Object.UID,
		},
		Type:                n.Type,
		Reason:              n.Reason,
		Message:             shorten(n.Message, maxMessage),
		Source:              corev1.EventSource{Component: source},
		ReportingController: source,
		Count:               1,
		FirstTimestamp:      at,
		LastTimestamp:       at,
	}, nil
}

func eventName(n plan.Note, source string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q", []string{
		string(n.Object.Kind), n.Object.Namespace, n.Object.Name, string(n.Object.UID), n.Type, n.Reason, n.Message, source,
	}))
	suffix := "." + hex.EncodeToString(h[:eventHash])
	name := strings.TrimRight(shorten(strings.ToLower(strings.ReplaceAll(n.Object.Name, "_", "-")), maxEventName), "-.") + suffix
	if len(validation.NameIsDNSSubdomain(name, false)) == 0 {
		return name
	}
	plain := strings.Map(func(r rune) rune { // a signing request may have names that no Event may have
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.TrimSuffix(name, suffix))
	return cmp.Or(strings.Trim(plain, "-"), "unnamed") + suffix
}

// shorten cuts s to at most limit bytes without cutting a character.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}
