// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"mime"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	typeJSON       = "application/json"
	typeProtobuf   = "application/vnd.kubernetes.protobuf"
	typeMergePatch = "application/merge-patch+json"
)

// acceptFor prefers protobuf, an order of magnitude faster to read, for the groups that Kubernetes itself serves.
// Custom resources exist as JSON only.
func acceptFor(g schema.GroupVersion) string {
	if strings.Contains(g.Group, ".") && !strings.HasSuffix(g.Group, ".k8s.io") {
		return typeJSON
	}
	return typeProtobuf + ", " + typeJSON
}

// unmarshaler is what the API types that have a protobuf form have in common.
type unmarshaler interface{ Unmarshal(data []byte) error }

// object reads one object, which must say itself that it is a gvk: an empty JSON object of a proxy is none.
func (a answer) object(gvk schema.GroupVersionKind, into runtime.Object) error {
	protobuf, err := a.protobuf()
	if err != nil {
		return err
	}
	if !protobuf {
		if err := json.UnmarshalCaseSensitivePreserveInts(a.body, into); err != nil {
			return fmt.Errorf("read %s: %w", gvk.Kind, err)
		}
		return expect(gvk, into.GetObjectKind().GroupVersionKind())
	}
	raw, err := a.envelope(gvk)
	if err != nil {
		return err
	}
	return unmarshal(raw, into)
}

// page reads one page of a list. Its metadata say where the next begins.
func (a answer) page(r plan.Resource) (all []plan.Object, meta metav1.ListMeta, err error) {
	protobuf, err := a.protobuf()
	if err != nil {
		return nil, meta, err
	}
	gvk := r.Group.WithKind(r.GVK().Kind + "List")
	if protobuf {
		return a.protobufPage(r, gvk)
	}
	items := reflect.New(reflect.SliceOf(reflect.TypeOf(r.New()))) // twice as fast as reading one item after the other
	list := struct {
		metav1.TypeMeta
		Metadata metav1.ListMeta `json:"metadata"`
		Items    any             `json:"items"`
	}{Items: items.Interface()}
	if err := json.UnmarshalCaseSensitivePreserveInts(a.body, &list); err != nil {
		return a.piecemeal(r, gvk)
	}
	if err := expect(gvk, list.GroupVersionKind()); err != nil {
		return nil, meta, err
	}
	for i := range items.Elem().Len() {
		item := items.Elem().Index(i)
		o, ok := item.Interface().(plan.Object)
		if !ok || item.IsNil() {
			return nil, meta, fmt.Errorf("read %s: item %d is no object", gvk.Kind, i)
		}
		all = append(all, o)
	}
	return all, list.Metadata, nil
}

// protobufPage relies on what all lists of Kubernetes have in common: field 1 is the metadata, field 2 an item.
func (a answer) protobufPage(r plan.Resource, gvk schema.GroupVersionKind) (all []plan.Object, meta metav1.ListMeta, err error) {
	raw, err := a.envelope(gvk)
	if err != nil {
		return nil, meta, err
	}
	for len(raw) > 0 {
		var field uint64
		var message []byte
		if field, message, raw, err = cut(raw); err != nil {
			return nil, meta, fmt.Errorf("read %s: %w", gvk.Kind, err)
		}
		switch field {
		case 1:
			err = meta.Unmarshal(message)
		case 2:
			o := r.New()
			all = append(all, o)
			err = unmarshal(message, o)
		}
		if err != nil {
			return nil, meta, fmt.Errorf("read %s: %w", gvk.Kind, err)
		}
	}
	return all, meta, nil
}

// next returns where the page after this one begins, where that can be told without reading the page: the metadata of a list in
// protobuf come first. Otherwise it is empty.
func (a answer) next() string {
	protobuf, err := a.protobuf()
	if err != nil || !protobuf {
		return ""
	}
	var meta metav1.ListMeta
	_, raw, err := a.frame()
	if err != nil {
		return ""
	}
	if field, message, _, err := cut(raw); err != nil || field != 1 || meta.Unmarshal(message) != nil {
		return ""
	}
	return meta.Continue
}

// protobuf reports which of the two formats the answer has.
func (a answer) protobuf() (bool, error) {
	media, _, err := mime.ParseMediaType(a.contentType)
	if err != nil || media != typeJSON && media != typeProtobuf {
		return false, fmt.Errorf("answer of type %q is not the API's", a.contentType)
	}
	return media == typeProtobuf, nil
}

// envelope returns the message within the frame that Kubernetes puts around everything in protobuf.
func (a answer) envelope(gvk schema.GroupVersionKind) ([]byte, error) {
	is, raw, err := a.frame()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", gvk.Kind, err)
	}
	return raw, expect(gvk, is.GroupVersionKind())
}

// frame opens a runtime.Unknown, which may be large, without a copy of it: field 1 says what it is, field 2 is the message.
func (a answer) frame() (is runtime.TypeMeta, raw []byte, err error) {
	rest, ok := bytes.CutPrefix(a.body, []byte("k8s\x00"))
	if !ok {
		return is, nil, errors.New("not the API's protobuf")
	}
	for len(rest) > 0 {
		var field uint64
		var part []byte
		if field, part, rest, err = cut(rest); err != nil {
			return is, nil, err
		}
		switch field {
		case 1:
			err = is.Unmarshal(part)
		case 2:
			raw = part
		}
		if err != nil {
			return is, nil, err
		}
	}
	return is, raw, nil
}

// cut splits the first field off a message whose fields are all messages themselves.
func cut(raw []byte) (field uint64, message, rest []byte, err error) {
	const lengthDelimited = 2
	tag, n := binary.Uvarint(raw)
	if n <= 0 || tag&7 != lengthDelimited {
		return 0, nil, nil, errors.New("not a message of messages in protobuf")
	}
	raw = raw[n:]
	size, n := binary.Uvarint(raw)
	if n <= 0 || size > uint64(len(raw)-n) {
		return 0, nil, nil, errors.New("the message is cut off")
	}
	raw = raw[n:]
	return tag >> 3, raw[:size], raw[size:], nil
}

func unmarshal(raw []byte, into any) error {
	u, ok := into.(unmarshaler)
	if !ok {
		return fmt.Errorf("%T has no protobuf form", into)
	}
	return u.Unmarshal(raw)
}

func expect(want, got schema.GroupVersionKind) error {
	if got != want {
		return fmt.Errorf("answer is %q, not %q", got, want)
	}
	return nil
}
