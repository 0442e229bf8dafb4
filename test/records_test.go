// SPDX-License-Identifier: Apache-2.0

package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The fields of a record are those of its schema. A version that does not know a field takes the record for broken, not for a newer one's:
// it makes a ledger anew, and who was to go stands again. Who adds a field writes a higher schema, at least where the field is there
// (RELIABILITY G9).
func TestFieldsOfRecords(t *testing.T) {
	t.Parallel()
	for _, r := range []struct{ dir, name, schema, fields string }{
		{"shared/machine", "Ledger", "ledgerSchema", "1 active adopted(name uid) failedTemplate failures next nextCreateAt rebuilt schema setUID"},
		{"shared/machine", "Intent", "intentSchema", "1 account attempt cluster code failures generation holder instance message notBefore outcome progress request schema " +
			"startedAt tag token unanswered until"},
		{"shared/machine", "SweepState", "sweepSchema", "1 accounts(clusterID emptySince namespace of owner spec) schema sightings"},
		{"shared/machine", "Disruptions", "disruptionSchema", "1 schema slots(at by controlPlane machine namespace uid)"},
		{"shared/machine", "Victim", "", "name plan uid"},
		{"shared/autoscaling", "State", "leftSchema", "3 groups(backoffUntil failed failures lastFailure reason request(at pods timedOut) resize(at from lost(machine uid) plan " +
			"resourceVersion setUID to) useless(node nodeUID of reason shape times until) waves(at pods to)) headroom held(reason " +
			"since) lastFailure lastScaleDown lastScaleUp removals(at committed drain fresh group machine machineUID maxGrace node " +
			"nodeUID plan resize) repack(at failed node nodeUID) schema seen(doubt left(nodes pods) nodes pods) stopped unneeded"},
		{"functions/remediate", "record", "recordSchema", "1 failing(at count of) inFlight(at controlPlane machine set step uid) schema seen(at what) storm(over since)"},
		{"functions/drain-node", "slot", "slotSchema", "1 name namespace schema uid"},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			structs, numbers := declared(t, filepath.Join("..", r.dir))
			got := strings.TrimSpace(numbers[r.schema] + " " + strings.Join(fieldsOf(structs, r.name), " "))
			if got != r.fields {
				t.Errorf("%s of %s is\n%q, it was\n%q: raise its schema, that versions which do not know it leave it alone", r.name, r.dir, got, r.fields)
			}
		})
	}
}

// declared returns the struct types of a package, and the numbers of its constants.
func declared(t *testing.T, dir string) (structs map[string]*ast.StructType, numbers map[string]string) {
	t.Helper()
	structs, numbers = map[string]*ast.StructType{}, map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, is := n.Type.(*ast.StructType); is {
					structs[n.Name.Name] = s
				}
			case *ast.ValueSpec:
				if len(n.Values) == 1 {
					if number, is := n.Values[0].(*ast.BasicLit); is {
						numbers[n.Names[0].Name] = number.Value
					}
				}
			}
			return true
		})
	}
	return structs, numbers
}

// fieldsOf returns the names that the fields of a struct have in JSON, and those of the structs of its package that it holds, sorted.
func fieldsOf(structs map[string]*ast.StructType, name string) (all []string) {
	for _, f := range structs[name].Fields.List {
		key := ""
		if f.Tag != nil {
			key, _, _ = strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		}
		if key == "-" {
			continue
		}
		var below []string
		ast.Inspect(f.Type, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is && structs[id.Name] != nil && id.Name != name {
				below = append(below, fieldsOf(structs, id.Name)...)
			}
			return true
		})
		if len(below) > 0 {
			key += "(" + strings.Join(below, " ") + ")"
		}
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}
