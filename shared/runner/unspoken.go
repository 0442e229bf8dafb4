// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"net/url"
	"regexp"
	"strings"
)

// shortest is how long a secret is at least: in place of anything shorter too much else would be left out.
const shortest = 6

var (
	secretName = regexp.MustCompile(`(?i)pass|secret|token|private|(^|[._-])key$`)
	namedLine  = regexp.MustCompile(`(?m)^[\s-]*"?([\w.-]+)"?\s*[:=]\s*"?'?(.*?)"?'?,?\s*$`)
)

// unspoken returns what takes the secrets of a credentials Secret out of a text: what stands there under the name of a secret, or
// in a line under such a name, as in a clouds.yaml. User names and addresses stay: they tell what to mend.
func unspoken(credentials map[string][]byte) *strings.Replacer {
	var pairs []string
	hide := func(name, value string) {
		if value = strings.TrimSpace(value); len(value) >= shortest && secretName.MatchString(name) {
			pairs = append(pairs, value, "(secret)", url.QueryEscape(value), "(secret)")
		}
	}
	for name, value := range credentials {
		hide(name, string(value))
		for _, line := range namedLine.FindAllStringSubmatch(string(value), -1) {
			hide(line[1], line[2])
		}
	}
	return strings.NewReplacer(pairs...)
}

// discreetError is an error of a cloud whose text had secrets in it.
type discreetError struct {
	error
	text string
}

// Error returns the text without them.
func (e discreetError) Error() string { return e.text }

// Unwrap returns the error, for its class.
func (e discreetError) Unwrap() error { return e.error }

// discreet returns err without the secrets that its text has. Drivers tell none; what the libraries tell that they call, and what
// clouds and proxies answer, nobody can know (R-S13, R-B35).
func discreet(err error, secrets *strings.Replacer) error {
	if err == nil {
		return nil
	}
	if text := secrets.Replace(err.Error()); text != err.Error() {
		return discreetError{err, text}
	}
	return err
}
