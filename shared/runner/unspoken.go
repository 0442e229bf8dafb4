// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// shortest is how long a secret is at least: in place of anything shorter too much else would be left out.
const shortest = 6

// shortestUserData is how long user data is at least: nothing starts a host with less, and words such as "true" stand beside it.
const shortestUserData = 16

// cut is where a text may have been cut, and a secret with it.
var cut = regexp.MustCompile(`…|\.\.\.|$`)

// unspoken takes the secrets of an account out of texts. Nil knows none. It is safe for concurrent use.
type unspoken struct {
	mu       sync.Mutex
	versions map[string]string   // of the Secrets with user data, by name
	forms    map[string][]string // of all secrets, by the Secret's name; credentials have none
	all      []string            // the longest first, so that none is left half
	replacer *strings.Replacer
}

// newUnspoken knows the secrets of a credentials Secret: what stands there under the name of a secret, and what stands in a value
// of it, such as a clouds.yaml, in or below what has such a name. User names and addresses stay: they tell what to mend.
func newUnspoken(credentials map[string][]byte) *unspoken {
	u := &unspoken{versions: map[string]string{}, forms: map[string][]string{}}
	var found []string
	for name, value := range credentials {
		if secretName.MatchString(name) {
			found = append(found, string(value))
		}
		found = append(found, secretsIn(value)...)
	}
	u.keep("", "", found)
	return u
}

// userData makes known what a Secret with user data holds, in place of what it held before: nothing of it is said.
func (u *unspoken) userData(name, version string, values map[string][]byte) {
	u.mu.Lock()
	known := version != "" && u.versions[name] == version
	u.mu.Unlock()
	if known {
		return
	}
	var found []string
	for _, value := range values {
		if found = append(found, secretsIn(value)...); len(value) >= shortestUserData {
			found = append(found, string(value))
		}
	}
	u.keep(name, version, found)
}

// keep replaces what is known of one Secret.
func (u *unspoken) keep(name, version string, secrets []string) {
	var forms []string
	for _, s := range secrets {
		trimmed := strings.TrimSpace(s)
		if len(trimmed) < shortest {
			continue
		}
		if forms = append(forms, spellings(trimmed)...); trimmed != s { // as it may be sent
			forms = append(forms, spellings(s)...)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forms[name], u.versions[name], u.all = forms, version, nil
	for _, forms := range u.forms {
		u.all = append(u.all, forms...) // none is changed that Replace may have
	}
	slices.SortFunc(u.all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	u.all = slices.Compact(u.all)
	var pairs []string
	for _, f := range u.all {
		pairs = append(pairs, f, "(secret)")
	}
	u.replacer = strings.NewReplacer(pairs...)
}

// Replace returns text without secrets, and without the beginnings of secrets that were cut with it: drivers keep what clouds say short.
func (u *unspoken) Replace(text string) string {
	if u == nil || text == "" {
		return text
	}
	u.mu.Lock()
	all, replacer := u.all, u.replacer
	u.mu.Unlock()
	text = replacer.Replace(text)
	var left strings.Builder
	from := 0
	for _, at := range cut.FindAllStringIndex(text, -1) {
		part := text[from:at[0]]
		if n := begun(part, all); n > 0 {
			part = part[:len(part)-n] + "(secret)"
		}
		left.WriteString(part + text[at[0]:at[1]])
		from = at[1]
	}
	return left.String()
}

// begun returns how many bytes at the end of text are the beginning of a secret, if enough to tell.
func begun(text string, secrets []string) int {
	most := 0
	for _, s := range secrets {
		for n := min(len(s)-1, len(text)); n >= max(shortest, most+1); n-- {
			if strings.HasSuffix(text, s[:n]) {
				most = n
				break
			}
		}
	}
	return most
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
func discreet(err error, secrets *unspoken) error {
	if err == nil {
		return nil
	}
	if text := secrets.Replace(err.Error()); text != err.Error() {
		return discreetError{err, text}
	}
	return err
}
