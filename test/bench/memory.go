// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"strings"
)

// PeakMB is the most memory that this program alone ever had, in millions of bytes: what rusage has includes the one that it was
// started from.
func PeakMB() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	var kibibytes float64
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscan(rest, &kibibytes)
		}
	}
	return kibibytes * 1024 / 1e6
}
