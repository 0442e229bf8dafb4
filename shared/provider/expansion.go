// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"math"
	"regexp"
)

// mostExpanded is how large a file may become, in bytes, once what its aliases stand for is written out.
const mostExpanded = 8 << 20

var (
	aliases = regexp.MustCompile(`(^|[^\w*&])\*[^\s,\]}]`)
	anchors = regexp.MustCompile(`(^|[^\w*&])&[^\s,\]}]`)
)

// Expands reports that a file in YAML, read as JSON, might become too large for the memory of a function: each alias repeats what its anchor
// names, and what an anchor names may have aliases in it. Of n aliases among k anchors and the rest that is at most (1+n/(k+1))^(k+1) times.
func Expands(text []byte) bool {
	n := float64(len(aliases.FindAllIndex(text, -1)))
	levels := 1 + float64(len(anchors.FindAllIndex(text, -1)))
	return n > 0 && float64(len(text))*math.Pow(1+n/levels, levels) > mostExpanded
}
