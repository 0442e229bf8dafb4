// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// maxDepth bounds how deep objects and lists of a structured event stand in each other.
const maxDepth = 64

// attributeForm is how CloudEvents spells the names of attributes, beside data_base64. Its SDK reads others as if they were in
// small letters.
var attributeForm = regexp.MustCompile(`^[a-z0-9]+$`)

// readInOneWay refuses the text of a structured event that one reader could understand so, and another otherwise: an attribute
// that is said twice, or in other letters, and what follows the event.
func readInOneWay(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not an object in JSON")
	}
	said := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		switch {
		case said[name]:
			return fmt.Errorf("%.80q is said twice", name)
		case name != "data_base64" && !attributeForm.MatchString(name):
			return fmt.Errorf("%.80q is no attribute", name)
		}
		said[name] = true
		if err := skip(d); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the end of the object
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the event")
	}
	return nil
}

// skip reads one value of an event.
func skip(d *json.Decoder) error {
	for deep := 1; ; { // the event itself
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			deep++
		case json.Delim('}'), json.Delim(']'):
			deep--
		}
		if deep > maxDepth {
			return fmt.Errorf("deeper than %d", maxDepth)
		}
		if deep == 1 {
			return nil
		}
	}
}
