// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// maxValue bounds the value of an attribute: an id comes back in the reply. The longest that Knative sends is the body of a refusal,
// which it cuts after 1024 bytes; the path of an object, its subject, has at most some 800.
const maxValue = 1 << 10

// Letter reads the event of a request as Parse does, of which type and length its attributes may be. In binary mode all of them
// stand in headers, so that of the body nothing is read.
func Letter(w http.ResponseWriter, r *http.Request) (*event.Event, error) {
	var body []byte
	if cehttp.NewMessage(r.Header, nil).ReadEncoding() != binding.EncodingBinary {
		text, done, err := read(w, r, nil)
		if err != nil {
			return nil, err
		}
		defer done()
		body = text
	}
	ev, err := eventOf(r, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return ev, nil
}

// eventOf reads the event of a request with this body, if that can be done in one way. The SDK sees nothing else: it panics where a
// header says no attribute, as "ce-: x" does.
func eventOf(r *http.Request, body []byte) (*event.Event, error) {
	if err := headersInOneWay(r.Header); err != nil {
		return nil, err
	}
	message := cehttp.NewMessage(r.Header, io.NopCloser(bytes.NewReader(body)))
	if message.ReadEncoding() == binding.EncodingStructured {
		if err := readInOneWay(body); err != nil {
			return nil, err
		}
	}
	return binding.ToEvent(r.Context(), message)
}

// headersInOneWay refuses headers that one reader could understand so, and another otherwise: an attribute that is said twice, or that
// has no name as CloudEvents spells it. HTTP makes no difference between capitals and small letters.
func headersInOneWay(h http.Header) error {
	said := map[string]bool{}
	for header, values := range h {
		header = strings.ToLower(header)
		name, isAttribute := strings.CutPrefix(header, "ce-")
		switch {
		case !isAttribute && header != "content-type":
			continue
		case isAttribute && !attributeForm.MatchString(name):
			return fmt.Errorf("header %.80q is no attribute", header)
		case said[header] || len(values) != 1:
			return fmt.Errorf("header %.80q is said twice", header)
		}
		said[header] = true
	}
	return nil
}

// inBounds refuses what no attribute of an event for us has: more than 1 kB, and what CloudEvents allows in none, control characters.
func inBounds(ev *event.Event) error {
	values := map[string]any{
		"id": ev.ID(), "source": ev.Source(), "type": ev.Type(), "subject": ev.Subject(),
		"datacontenttype": ev.DataContentType(), "dataschema": ev.DataSchema(),
	}
	for name, value := range ev.Extensions() {
		values[name] = value
	}
	for name, value := range values {
		text, _ := value.(string)
		if len(text) > maxValue {
			return fmt.Errorf("%.80q of %d bytes", name, len(text))
		}
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			return fmt.Errorf("%.80q has control characters", name)
		}
	}
	return nil
}
