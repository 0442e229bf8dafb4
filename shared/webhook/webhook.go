// SPDX-License-Identifier: Apache-2.0

// Package webhook reads what admission webhooks have API servers answer.
package webhook

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Denied reports whether err is a webhook's no: nothing was done, whatever code it chose for that. An API server has these words for it
// and no other mark.
func Denied(err error) bool {
	s, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && strings.HasPrefix(s.ErrStatus.Message, "admission webhook ") && strings.Contains(s.ErrStatus.Message, " denied the request")
}
