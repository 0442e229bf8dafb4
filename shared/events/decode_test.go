// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
)

// Of headers an attribute is read in one way: what says none, or one twice, is refused before the SDK reads it, by functions and by
// dead-letter (RELIABILITY §4, inputs).
func TestHeadersAreReadInOneWay(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 1000)
	for _, c := range []struct {
		header string
		values []string
		want   string // empty: it is taken
	}{
		{"Ce-Scan2", []string{"x"}, ""},
		{"Cetera", []string{"x", "y"}, ""},
		{"X-Ce-Name", []string{"x", "y"}, ""},
		{"Ce-", []string{"x"}, `header "ce-" is no attribute`},
		{"ce-", []string{"x"}, `header "ce-" is no attribute`},
		{"Ce-Na_me", []string{"x"}, `header "ce-na_me" is no attribute`},
		{"Ce-Na-Me", []string{"x"}, `header "ce-na-me" is no attribute`},
		{"Ce-0O\x80", []string{"x"}, ` is no attribute`},
		{"Ce-" + long + "!", []string{"x"}, ` is no attribute`},
		{"Ce-Name", []string{"worker-a", "worker-b"}, `header "ce-name" is said twice`},
		{"Ce-Name", nil, `header "ce-name" is said twice`},
		{"ce-name", []string{"worker-b"}, `header "ce-name" is said twice`},
		{"Ce-Type", []string{TypePing, TypeSimulate}, `header "ce-type" is said twice`},
		{"Ce-" + long, []string{"x", "y"}, ` is said twice`},
		{"Content-Type", []string{"application/json", "application/cloudevents+json"}, `header "content-type" is said twice`},
	} {
		r := reference("Machine", served[0], "worker-a")
		r.Header[c.header] = c.values
		_, err := Parse(httptest.NewRecorder(), r, served, nil)
		_, lost := Letter(httptest.NewRecorder(), r)
		for _, err := range []error{err, lost} {
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 250) {
				t.Errorf("%.80q: %.80q: %.300v, want %q", c.header, c.values, err, c.want)
			}
		}
	}
}

// What comes back in a reply, and what is compared and logged, is short and can be read. A dead letter is taken whatever it says: who
// refused it did so for a reason that shall be told.
func TestAttributesAreShort(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("v", maxValue) // as knativeerrordata may have
	for _, name := range []string{"id", "source", "type", "subject", "datacontenttype", "knativeerrordata"} {
		for value, want := range map[string]string{
			whole: "", "ä": "", whole + "v": `"` + name + `" of 1025 bytes`, strings.Repeat("v", 60<<10): `"` + name + `" of 61440 bytes`,
			`\u0000`: `"` + name + `" has control characters`, `a\nb`: `"` + name + `" has control characters`,
			`\u007f`: `"` + name + `" has control characters`, `\u0085`: `"` + name + `" has control characters`,
		} {
			if name == "type" && want == "" {
				want = "type" // in bounds, though none of ours
			}
			if name == "source" && strings.HasSuffix(want, "characters") {
				continue // it is a reference: the SDK writes them as %85, or refuses them
			}
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(saying(name, value)))
			r.Header.Set("Content-Type", "application/cloudevents+json")
			_, err := Parse(httptest.NewRecorder(), r, served, nil)
			if want == "" && err != nil || want != "" && (!errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), want) || len(err.Error()) > 250) {
				t.Errorf("%s of %.20q: %.300v, want %q", name, value, err, want)
			}
		}
	}
	r := reference("Machine", served[0], "worker-a")
	r.Header.Set("Ce-Id", whole+"v")
	if ev, err := Letter(httptest.NewRecorder(), r); err != nil || len(ev.ID()) != maxValue+1 {
		t.Errorf("a dead letter: %v", err)
	}
}

// saying returns a tick with another value of one attribute, in JSON.
func saying(name, value string) string {
	text := `{"specversion":"1.0"`
	for attribute, usual := range map[string]string{"id": "1", "source": "x", "type": TypePing, "subject": "x", "datacontenttype": "x/y", "knativeerrordata": "x"} {
		if attribute == name {
			usual = value
		}
		text += `,"` + attribute + `":"` + usual + `"`
	}
	return text + "}"
}

// words are what names are made of, said here once more: whoever asks the code's own patterns misses what is wrong with these.
const words = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func FuzzParse(f *testing.F) {
	for _, kind := range []string{"Node/status", "Node.x"} {
		f.Add("application/json", []byte(`{}`), "worker-a", "Ce-Kind", kind)
	}
	for _, version := range []string{"a/b/v1", "v1/", "apps/v1.1", "../v1"} {
		f.Add("application/json", []byte(`{}`), "worker-a", "Ce-Apiversion", version)
	}
	for _, name := range []string{"a/b", "A", "a_b"} {
		f.Add("application/json", []byte(`{}`), name, "Ce-Kind", "Node")
		f.Add("application/json", []byte(`{}`), name, "Ce-Kind", "CertificateSigningRequest")
	}
	f.Add("application/json", []byte(`{}`), "worker-a", "Ce-Namespace", served[0]+"-2")
	f.Add("application/cloudevents+json", []byte(`{"specversion":"1.0","id":"2","source":"x","type":"dev.knative.apiserver.ref.add"}`), "a", "Ce-Kind", "Node")
	f.Add("application/json", []byte(`{}`), "worker-a", "Ce-Type", TypeSimulate)
	f.Add("application/json", []byte(`{}`), "worker-a", "Ce-Apiversion", "v1/../secrets")
	f.Add("", []byte(`{}`), "worker-a", "ce-Time", "yesterday")
	f.Add("application/cloudevents-batch+json", []byte(`[{}]`), "", "Ce-Specversion", "0.3")
	f.Add("0", []byte("0"), "", "Ce-", "0O\x80")
	f.Add("application/json", []byte(`{}`), "worker-a", "ce-", "x")
	f.Fuzz(func(t *testing.T, contentType string, body []byte, name, header, value string) {
		r := reference("Machine", served[0], "x")
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Ce-Name", name)
		r.Header[http.CanonicalHeaderKey(header)] = []string{value} // an HTTP server lets some of it through, "ce-" too
		e, err := Parse(httptest.NewRecorder(), r, served, nil)
		switch {
		case err != nil && !errors.Is(err, ErrMalformed):
			t.Errorf("error %v", err)
		case err == nil && len(e.ID) > maxValue:
			t.Errorf("an id of %d bytes", len(e.ID))
		case err != nil || e.Tick() || e.Type == TypeSimulate:
		case e.Name == "" || len(e.Name) > 253 || strings.Trim(e.Name, words+"-._") != "" || strings.Trim(e.Name[:1], words) != "",
			e.Kind == "" || len(e.Kind) > 63 || strings.Trim(e.Kind, words) != "",
			e.APIVersion == "" || strings.Count(e.APIVersion, "/") > 1 || strings.Trim(e.APIVersion, words+"-./") != "" || strings.Trim(path.Base(e.APIVersion), words) != "" || strings.Trim(e.APIVersion[:1], words) != "",
			e.Kind != "CertificateSigningRequest" && (e.Name != strings.ToLower(e.Name) || strings.Contains(e.Name, "_")),
			e.Namespace != "" && e.Namespace != served[0]:
			t.Errorf("accepted %+v", e)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if ev, lost := Letter(httptest.NewRecorder(), r); lost != nil && err == nil || (lost == nil) != (ev != nil) {
			t.Errorf("dead-letter: %v, a function: %v", lost, err)
		}
	})
}
