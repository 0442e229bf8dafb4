// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
	parts "sigs.k8s.io/yaml/goyaml.v2"
)

// ErrExpands is a file that Expands.
var ErrExpands = errors.New("there are more aliases than can be followed")

const (
	// mostExpanded is how large a file may become, in bytes, once what its aliases stand for is written out.
	mostExpanded = 8 << 20
	// mostCounted is how large a file is at most of which that is counted.
	mostCounted = 64 << 10
)

var (
	aliases = regexp.MustCompile(`(^|[^\w*&])\*[^\s,\]}]`)
	anchors = regexp.MustCompile(`(^|[^\w*&])&[^\s,\]}]`)
)

// Expands reports that a file in YAML, read as JSON, might become too large for the memory of a function: each alias repeats what its anchor
// names, and what an anchor names may have aliases in it. Of n aliases among k anchors and the rest that is at most (1+n/(k+1))^(k+1) times.
// Most that could become so large do not: of a short one what it becomes is counted. One that cannot be read, such as one with aliases of no
// anchor, becomes nothing.
func Expands(text []byte) bool {
	if bytes.IndexByte(text, '*') < 0 || bytes.IndexByte(text, '&') < 0 { // as of nearly all
		return false
	}
	n := float64(len(aliases.FindAllIndex(text, -1)))
	levels := 1 + float64(len(anchors.FindAllIndex(text, -1)))
	if n == 0 || levels == 1 || float64(len(text))*math.Pow(1+n/levels, levels) <= mostExpanded {
		return false
	}
	if len(text) > mostCounted {
		return true
	}
	var file any                                         // whose texts are not written out yet: an alias costs no more than what it stands for has parts
	if err := parts.Unmarshal(text, &file); err != nil { // the very parser of sigs.k8s.io/yaml, which writes all out
		return strings.Contains(err.Error(), "excessive aliasing") // of a million parts
	}
	return size(file) > mostExpanded
}

// ReadYAML reads a file strictly, with an error for a field that is unknown or said twice, and for one that Expands.
func ReadYAML(text string, into any) error {
	if Expands([]byte(text)) {
		return ErrExpands
	}
	return yaml.UnmarshalStrict([]byte(text), into)
}

// size returns about how many bytes a file has in memory, and written out.
func size(v any) int {
	const each = 32
	all := each
	switch v := v.(type) {
	case string:
		all += len(v)
	case []any:
		for _, below := range v {
			all += size(below)
		}
	case map[any]any:
		for name, below := range v {
			all += size(name) + size(below)
		}
	}
	return all
}
