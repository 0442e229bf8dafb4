// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/clustertest"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	clustertest.Run(t, func(*testing.T) clustertest.Harness {
		server := memory.New(time.Now)
		return clustertest.Harness{
			Cluster: server.As("one", "here"), Other: server.As("other", "here"),
			Namespace: "here", Elsewhere: "elsewhere",
			PutSecret: func(_ *testing.T, s *corev1.Secret) { server.PutSecret(s) },
			Events: func(_ *testing.T, namespace string) (in []corev1.Event) {
				for _, e := range server.Events() {
					if e.Namespace == namespace {
						in = append(in, e)
					}
				}
				return in
			},
			Clock: time.Now,
		}
	})
}
