// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A disruption budget blocks an eviction with its code and its cause, and a webhook that could not be asked with an internal error that
// says so. Neither the code alone nor the words, nor the cause under another code, proves that anything was held back.
func TestOnlyBudgetsAndWebhooksBlock(t *testing.T) {
	t.Parallel()
	const webhook = `Internal error occurred: failed calling webhook "a.example": connection refused`
	for name, c := range map[string]struct {
		code    int32
		reason  metav1.StatusReason
		message string
		cause   metav1.CauseType
		want    bool
	}{
		"a budget":                 {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "", policyv1.DisruptionBudgetCause, true},
		"an overloaded server":     {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "", "", false},
		"two budgets":              {http.StatusInternalServerError, metav1.StatusReasonInternalError, "", policyv1.DisruptionBudgetCause, false},
		"a silent webhook":         {http.StatusInternalServerError, metav1.StatusReasonInternalError, webhook, "", true},
		"an internal error":        {http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: request timed out", "", false},
		"a timeout at a webhook's": {http.StatusGatewayTimeout, metav1.StatusReasonTimeout, webhook, "", false},
	} {
		status := metav1.Status{Status: metav1.StatusFailure, Code: c.code, Reason: c.reason, Message: c.message, Details: &metav1.StatusDetails{}}
		if c.cause != "" {
			status.Details.Causes = []metav1.StatusCause{{Type: c.cause}}
		}
		if b, got := blocked(&apierrors.StatusError{ErrStatus: status}); got != c.want || (b != nil) != c.want {
			t.Errorf("%s: blocked %v", name, got)
		}
	}
}

// Pods are listed by their Node, or as those that have none yet, and all others without a Node's name.
func TestPodsAreSelectedByNode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   snapshot.Query
		want string
	}{
		{snapshot.Query{Kind: "Pod"}, ""},
		{snapshot.Query{Kind: "Pod", Node: "a"}, "spec.nodeName=a"},
		{snapshot.Query{Kind: "Pod", Unbound: true}, "spec.nodeName="},
		{snapshot.Query{Kind: "Machine", Node: "a"}, ""},
	} {
		if got := selectors(c.of).Get("fieldSelector"); got != c.want {
			t.Errorf("%+v: %q, want %q", c.of, got, c.want)
		}
	}
}
