// SPDX-License-Identifier: Apache-2.0

package providerspec_test

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/providerspec"
	"github.com/machine-functions/machine-functions/test/admission"
)

// BenchmarkDefault is what a scan spends on every Machine.
func BenchmarkDefault(b *testing.B) {
	for _, table := range admission.Tables(b, "testdata") {
		b.Run(table.Provider, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				providerspec.Default(table.Good, admission.Subject)
			}
		})
	}
}

// BenchmarkValidate is what a Machine costs once, before its instance is asked for.
func BenchmarkValidate(b *testing.B) {
	for _, table := range admission.Tables(b, "testdata") {
		b.Run(table.Provider, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				providerspec.Validate(table.Good, admission.Subject)
			}
		})
	}
}
