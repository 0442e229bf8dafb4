// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// What is called MB is millions of bytes; the system counts in units of 1,024. Its peak is not exact: it may be a little less later.
func TestPeakIsInMegabytes(t *testing.T) {
	t.Parallel()
	peak := func() float64 {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Skip(err)
		}
		n, err := strconv.Atoi(string(regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(text)[1]))
		if err != nil {
			t.Fatal(err)
		}
		return float64(n*1024) / 1e6
	}
	before := peak()
	got := PeakMB()
	if after := peak(); got < before*0.99 || got > after*1.01 {
		t.Errorf("a peak of %.1f MB, between one of %.1f before and one of %.1f after", got, before, after)
	}
}
