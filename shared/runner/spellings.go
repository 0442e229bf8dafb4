// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var (
	secretName = regexp.MustCompile(`(?i)pass|secret|token|private|(^|[._-])key$`)
	userName   = regexp.MustCompile(`(?i)(^|[._-])user(_?name)?$`) // of whatever server
	escape     = regexp.MustCompile(`%[0-9A-F]{2}`)
	namedLine  = regexp.MustCompile(`(?m)^[\s-]*"?([\w.-]+)"?[ \t]*[:=][ \t]*"?'?(.*?)"?'?,?\s*$`)
)

// secretive reports whether what has this name is secret.
func secretive(name string) bool { return secretName.MatchString(name) && !userName.MatchString(name) }

// secretsIn returns what may be secret in a value: in YAML, JSON or lines, whatever stands in or below what has the name of a secret.
// It is not whole where a value is larger, or becomes larger, than is looked into.
func secretsIn(value []byte) (found []string, whole bool) {
	for _, line := range namedLine.FindAllStringSubmatch(string(value), -1) {
		if secretive(line[1]) {
			found = append(found, line[2])
		}
	}
	if len(value) > mostSecret { // as a bundle of certificates may be
		return found, bytes.Contains(value, []byte("-----BEGIN CERTIFICATE"))
	}
	if provider.Expands(value) {
		return nil, false
	}
	var parsed any
	if yaml.Unmarshal(value, &parsed, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }) != nil {
		return found, true
	}
	if file, is := parsed.(map[string]any); is {
		if clouds, are := file["clouds"].(map[string]any); are { // a cloud may be called "private"
			file["clouds"] = slices.Collect(maps.Values(clouds))
		}
	}
	return append(found, leaves(parsed, false)...), true
}

// leaves returns the texts and numbers of a document that stand in or below what has the name of a secret.
func leaves(v any, secret bool) (found []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			found = append(found, leaves(below, secret || secretive(name))...)
		}
	case []any:
		for _, below := range v {
			found = append(found, leaves(below, secret)...)
		}
	case string:
		if secret {
			found = append(found, v)
		}
	case json.Number:
		if secret {
			found = append(found, v.String())
		}
	}
	return found
}

// spellings returns how libraries, clouds and proxies may write a secret: as it is, quoted, escaped, in base64; each also with its
// white space in one line, as drivers write what clouds say.
func spellings(secret string) (all []string) {
	quoted, _ := json.Marshal(secret) // of a text it does not fail
	for _, s := range []string{
		secret, inner(string(quoted)), inner(strconv.Quote(secret)), inner(strconv.QuoteToASCII(secret)), html.EscapeString(secret),
		strings.ReplaceAll(html.EscapeString(secret), "&#34;", "&quot;"), url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret)),
	} {
		all = append(all, s, strings.Join(strings.Fields(s), " "), escape.ReplaceAllStringFunc(s, strings.ToLower))
	}
	for before := range 3 {
		all = append(all, encoded(base64.RawStdEncoding, secret, before), encoded(base64.RawURLEncoding, secret, before))
	}
	return long(all)
}

// inner returns a quoted text without its quotes.
func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// encoded returns those characters of a text in base64 that tell of a secret alone, which this many bytes more than a multiple of
// three precede, as a user's name does in what a login sends.
func encoded(e *base64.Encoding, secret string, before int) string {
	s := e.EncodeToString([]byte("  "[:before] + secret))
	return s[(before*8+5)/6 : (before+len(secret))*8/6]
}

// long returns those that are long enough.
func long(some []string) (all []string) {
	for _, s := range some {
		if len(s) >= shortest {
			all = append(all, s)
		}
	}
	return all
}
