// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// shortest is how long a secret is at least, in bytes: in place of anything shorter too much else would be left out.
	shortest = 6
	// shortestUserData is how long user data is at least: nothing starts a host with less, and words such as "true" stand beside it.
	shortestUserData = 16
	// mostUserData is how long user data is at most, more than any cloud takes.
	mostUserData = 64 << 10
	// mostRemembered is of how many Secrets the user data is known, the latest ones.
	mostRemembered = 8
	// mostSecret is how much of credentials may be secret, in bytes: each is known in two dozen spellings.
	mostSecret = 64 << 10
)

// untold is what is said where nobody knows what is secret.
const untold = "(not told: there is too much in the credentials to know what of it is secret)"

// unspoken takes the secrets of an account out of texts. Nil knows none. It is safe for concurrent use. What is secret is found out when
// a text is to be told first: where nothing goes wrong there is none.
type unspoken struct {
	mu       sync.Mutex
	unread   map[string][]byte // the credentials, until then
	own      []string          // of them, in all spellings
	of       []started         // what hosts were started with, the latest last
	all      []string          // of both, the longest first, so that none is left half
	replacer *strings.Replacer // of all; nil: to be made, with all
	mute     bool              // too much is secret
}

// started is the user data of one Secret.
type started struct {
	name, version string
	forms         []string
}

// newUnspoken knows the secrets of a credentials Secret: what stands there under the name of a secret, and what stands in a value
// of it, such as a clouds.yaml, in or below what has such a name. User names and addresses stay: they tell what to mend. Nobody changes
// the values any more.
func newUnspoken(credentials map[string][]byte) *unspoken {
	return &unspoken{unread: maps.Clone(credentials)}
}

// read finds out what is secret in the credentials. The caller has the lock.
func (u *unspoken) read() {
	found := map[string]bool{}
	for name, value := range u.unread {
		if secretive(name) {
			found[string(value)] = true
		}
		some, whole := secretsIn(value)
		u.mute = u.mute || !whole
		for _, s := range some {
			found[s] = true
		}
	}
	size := 0
	for s := range found {
		size += len(s)
	}
	if u.mute = u.mute || size > mostSecret; !u.mute {
		for s := range found {
			trimmed := strings.TrimSpace(s)
			if len(trimmed) < shortest {
				continue
			}
			if u.own = append(u.own, spellings(trimmed)...); trimmed != s { // as it may be sent
				u.own = append(u.own, spellings(s)...)
			}
		}
	}
	u.unread = nil
}

// userData makes known what a Secret with user data holds, as a whole and from its beginning, in place of what it held before. What stands
// within is not looked for: it may be any words.
func (u *unspoken) userData(name, version string, values map[string][]byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := started{name: name, version: version}
	if at := slices.IndexFunc(u.of, func(o started) bool { return o.name == name }); at >= 0 {
		before := u.of[at]
		u.of = append(slices.Delete(u.of, at, at+1), before) // the latest
		if version != "" && before.version == version {
			return
		}
		u.of = u.of[:len(u.of)-1]
	}
	for _, value := range values {
		if len(value) >= shortestUserData && len(value) <= mostUserData {
			now.forms = append(now.forms, written(string(value))...)
		}
	}
	if u.of = append(u.of, now); len(u.of) > mostRemembered {
		u.of = slices.Delete(u.of, 0, 1)
	}
	u.replacer = nil
}

// written returns how user data may be written: as it is, in one line, quoted, in base64, each also without the white space around it.
func written(text string) (forms []string) {
	for _, s := range []string{text, strings.TrimSpace(text)} {
		forms = append(forms, s, strings.Join(strings.Fields(s), " "), inner(strconv.Quote(s)), base64.StdEncoding.EncodeToString([]byte(s)))
	}
	return slices.DeleteFunc(forms, func(f string) bool { return len(f) < shortestUserData })
}

// known returns the secrets, the longest first, so that none is left half, and what replaces them; or that too much is secret.
func (u *unspoken) known() (all []string, _ *strings.Replacer, mute bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.read()
	if u.replacer == nil {
		all := slices.Clone(u.own) // none is changed that Replace may have
		for _, o := range u.of {
			all = append(all, o.forms...)
		}
		slices.SortFunc(all, func(a, b string) int {
			return cmp.Or(len(b)-len(a), strings.Compare(a, b))
		})
		u.all = slices.Compact(all)
		var pairs []string
		for _, f := range u.all {
			pairs = append(pairs, f, "(secret)")
		}
		u.replacer = strings.NewReplacer(pairs...)
	}
	return u.all, u.replacer, u.mute
}

// mostText is how much of a text is looked into, in bytes.
const mostText = 4 * mostSaid

// cut is where drivers cut what clouds say, and a secret with it.
const cut = "…"

// Replace returns text without secrets, and without the beginnings of secrets that were cut with it.
func (u *unspoken) Replace(text string) string {
	if u == nil || text == "" {
		return text
	}
	all, replacer, mute := u.known()
	if mute {
		return untold
	}
	if len(text) > mostText { // of which less is kept anyway
		text = strings.ToValidUTF8(text[:mostText], "") + cut
	}
	parts := strings.Split(replacer.Replace(text), cut)
	for i, part := range parts[:len(parts)-1] {
		if n := begun(part, all); n > 0 {
			parts[i] = part[:len(part)-n] + "(secret)"
		}
	}
	return strings.Join(parts, cut)
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
