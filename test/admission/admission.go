// SPDX-License-Identifier: Apache-2.0

// Package admission reads the table of specs that the rules in Go must judge exactly as the policies do.
package admission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// Subject is the Machine that all specs of the table belong to.
var Subject = providerspec.Subject{
	Name: "worker-abcde", Namespace: "openshift-machine-api", ClusterID: "cluster-a389-fmxsv", Region: "eu-west-1",
}

// Table is what one provider's file holds.
type Table struct {
	Provider string          `json:"-"`    // the file's name
	Good     json.RawMessage `json:"good"` // a spec without any fault
	Cases    []Case          `json:"cases"`
	Defaults []Default       `json:"defaults"`
}

// Case is the good spec with a change, and what is said about it: every error and warning begins with its text here.
type Case struct {
	Name         string          `json:"name"`
	Change       json.RawMessage `json:"change"` // JSON merge patch
	Spec         json.RawMessage `json:"spec"`   // instead of a change
	ControlPlane bool            `json:"controlPlane"`
	Errors       []string        `json:"errors"`
	Warnings     []string        `json:"warnings"`
}

// Default is a spec and what it becomes.
type Default struct {
	Name string          `json:"name"`
	Arch string          `json:"arch"`
	Spec json.RawMessage `json:"spec"`
	Want json.RawMessage `json:"want"`
}

// Subject returns the Machine that the case's spec belongs to.
func (c Case) Subject() providerspec.Subject {
	s := Subject
	s.ControlPlane = c.ControlPlane
	return s
}

// Subject returns the Machine that the spec belongs to.
func (d Default) Subject() providerspec.Subject {
	s := Subject
	s.Arch = d.Arch
	return s
}

// Tables reads every table of a folder.
func Tables(tb testing.TB, folder string) []Table {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no tables in %s: %v", folder, err)
	}
	var tables []Table
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		t := Table{Provider: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		if err := yaml.UnmarshalStrict(b, &t); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		for i, c := range t.Cases {
			if len(c.Spec) > 0 {
				continue
			}
			if t.Cases[i].Spec, err = merged(t.Good, c.Change); err != nil {
				tb.Fatalf("%s: %s: %v", file, c.Name, err)
			}
		}
		tables = append(tables, t)
	}
	return tables
}

// merged applies a JSON merge patch (RFC 7386).
func merged(base, change json.RawMessage) (json.RawMessage, error) {
	if len(change) == 0 {
		return base, nil
	}
	var b, c any
	if err := json.Unmarshal(base, &b); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(change, &c); err != nil {
		return nil, err
	}
	return json.Marshal(merge(b, c))
}

func merge(base, change any) any {
	fields, ok := change.(map[string]any)
	if !ok {
		return change
	}
	out, ok := base.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for name, value := range fields {
		if value == nil {
			delete(out, name)
			continue
		}
		out[name] = merge(out[name], value)
	}
	return out
}

// Match pairs what was said with what was to be said: each message must begin with a text of its own. It returns what
// was not said, and what was said beyond.
func Match(want, got []string) (missing, more []string) {
	rest := append([]string(nil), got...)
	for _, w := range want {
		found := false
		for i, g := range rest {
			if strings.HasPrefix(g, w) {
				rest, found = append(rest[:i], rest[i+1:]...), true
				break
			}
		}
		if !found {
			missing = append(missing, w)
		}
	}
	return missing, rest
}
