// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// content is a thing of the API, as JSON has it.
type content = map[string]any

// text returns what c says of a field, or "".
func text(c content, path ...string) string {
	var v any = c
	for _, name := range path {
		of, is := v.(content)
		if !is {
			return ""
		}
		v = of[name]
	}
	switch v := v.(type) {
	case nil:
		return ""
	case float64: // of JSON
		return strconv.FormatInt(int64(v), 10)
	}
	return fmt.Sprint(v)
}

// whole returns the number that c says, or 0.
func whole(c content, path ...string) int64 {
	n, _ := strconv.ParseInt(text(c, path...), 10, 64)
	return n
}

// several returns the things of a list in c, such as disk_attachments.disk_attachment.
func several(c content, list, one string) (all []content) {
	of, _ := c[list].(content)
	some, _ := of[one].([]any)
	for _, v := range some {
		if it, is := v.(content); is {
			all = append(all, it)
		}
	}
	return all
}

// texts returns v with numbers and truths written as text. Times stay numbers.
func texts(v any) any {
	switch v := v.(type) {
	case content:
		all := content{}
		for name, it := range v {
			all[name] = it
			if name != "creation_time" {
				all[name] = texts(it)
			}
		}
		return all
	case []content:
		all := []any{}
		for _, it := range v {
			all = append(all, texts(it))
		}
		return all
	case int64, bool:
		return fmt.Sprint(v)
	}
	return v
}

// plural is what the element around a list is called.
func plural(name string) string {
	if strings.HasSuffix(name, "y") {
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

// xmlOf writes a thing as the API's XML: ids and addresses are attributes.
func xmlOf(name string, c content) string {
	var b strings.Builder
	element(&b, name, c)
	return b.String()
}

func element(b *strings.Builder, name string, v any) {
	switch v := v.(type) {
	case content:
		b.WriteString("<" + name)
		for _, key := range []string{"href", "id"} {
			if value := text(v, key); value != "" {
				b.WriteString(" " + key + `="` + escape(value) + `"`)
			}
		}
		b.WriteString(">")
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "href" && key != "id" {
				element(b, key, v[key])
			}
		}
		b.WriteString("</" + name + ">")
	case []content:
		for _, it := range v {
			element(b, name, it)
		}
	case []any:
		for _, it := range v {
			element(b, name, it)
		}
	case int64:
		value := strconv.FormatInt(v, 10)
		if name == "creation_time" {
			value = time.UnixMilli(v).UTC().Format(time.RFC3339Nano)
		}
		b.WriteString("<" + name + ">" + value + "</" + name + ">")
	default:
		b.WriteString("<" + name + ">" + escape(fmt.Sprint(v)) + "</" + name + ">")
	}
}

func escape(value string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(value)) // to memory
	return b.String()
}

// node is an element that is read.
type node struct {
	name  string
	attrs content
	below []node
	said  string
}

// readXML returns a thing as JSON has it. An element that is called as the plural of its first one is a list.
func readXML(b []byte) (content, error) {
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return content{}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read XML: %w", err)
		}
		if start, is := token.(xml.StartElement); is {
			n, err := readNode(d, start)
			if err != nil {
				return nil, err
			}
			c, _ := n.content().(content)
			return c, nil
		}
	}
}

func readNode(d *xml.Decoder, start xml.StartElement) (node, error) {
	n := node{name: start.Name.Local, attrs: content{}}
	for _, a := range start.Attr {
		n.attrs[a.Name.Local] = a.Value
	}
	for {
		token, err := d.Token()
		if err != nil {
			return n, fmt.Errorf("read XML: %w", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			below, err := readNode(d, token)
			if err != nil {
				return n, err
			}
			n.below = append(n.below, below)
		case xml.CharData:
			n.said += string(token)
		case xml.EndElement:
			return n, nil
		}
	}
}

func (n node) content() any {
	if len(n.below) == 0 && len(n.attrs) == 0 && strings.TrimSpace(n.said) != "" {
		return n.said
	}
	c := maps.Clone(n.attrs)
	for _, b := range n.below {
		if n.name != plural(b.name) {
			c[b.name] = b.content()
			continue
		}
		some, _ := c[b.name].([]any)
		c[b.name] = append(some, b.content())
	}
	return c
}
