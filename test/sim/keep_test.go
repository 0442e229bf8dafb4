// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// setting is what a schedule takes beside its choices to be played again.
type setting interface {
	replay(vector []byte, trace io.Writer) error
}

func (c Config) replay(vector []byte, trace io.Writer) error {
	c.Records = nil
	p := NewPlay(c, &Script{Given: vector})
	p.Trace = trace
	return p.Run()
}

// replay implements setting. What a schedule showed to be when it was found, it may be no more: it is played to its end.
func (b Bout) replay(vector []byte, trace io.Writer) error {
	b.unreduced, b.ended = true, nil
	b.Prepare()
	defer b.Close()
	b.play.Trace = trace
	return b.Play(&Script{Given: vector})
}

// keep tells a violation, the smallest schedule that has it, as a line of kept, and its trace.
func keep(of setting, vector []byte, err error) string {
	if *brief {
		return err.Error()
	}
	return keepWithin(20*time.Second, of, vector, err)
}

// keepWithin takes no longer than that to find the smallest.
func keepWithin(d time.Duration, of setting, vector []byte, err error) string {
	small, trace, again := story(d, of, vector, err)
	if again == nil {
		return fmt.Sprintf("%v\nnot so when it is played again: %s", err, line(of, vector, err))
	}
	return fmt.Sprintf("%v\nkeep it: %s\n%s", again, line(of, small, again), trace)
}

// story returns the smallest schedule with the violation of a failing one, its trace and the violation; nil if it has none.
func story(d time.Duration, of setting, vector []byte, err error) ([]byte, string, error) {
	rule, _, _ := strings.Cut(err.Error(), ":")
	same := func(e error) bool { return e != nil && strings.HasPrefix(e.Error(), rule+":") }
	end := time.Now().Add(d)
	small := Shrink(vector, func(v []byte) bool { return time.Now().Before(end) && same(of.replay(v, nil)) })
	var trace strings.Builder
	if err = of.replay(small, &trace); !same(err) {
		return nil, "", nil
	}
	text := trace.String()
	if len(text) > 12000 {
		text = text[:4000] + "\n…\n" + text[len(text)-8000:]
	}
	return small, text, err
}

// line is a schedule as kept has it.
func line(of setting, vector []byte, was error) string {
	return fmt.Sprintf("{was: %q, of: %s, vector: %q},", was, literal(reflect.ValueOf(of)), hex.EncodeToString(vector))
}

// named are the numbers that have names.
var named = map[string]any{
	"Machines": Machines, "Healing": Healing, "Scaling": Scaling, "creates": creates, "removes": removes, "claims": claims, "frees": frees,
}

// literal is v in Go: all that is not as it is anyway, but for what the tests put there, functions and pointers.
func literal(v reflect.Value) string {
	var of []string
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if k := f.Kind(); v.Type().Field(i).IsExported() && !f.IsZero() && k != reflect.Func && k != reflect.Pointer {
				of = append(of, v.Type().Field(i).Name+": "+literal(f))
			}
		}
		return v.Type().Name() + "{" + strings.Join(of, ", ") + "}"
	case reflect.Slice:
		for i := range v.Len() {
			of = append(of, literal(v.Index(i)))
		}
		return strings.Replace(v.Type().String(), "uint8", "byte", 1) + "{" + strings.Join(of, ", ") + "}"
	}
	for name, n := range named {
		if n == v.Interface() {
			return name
		}
	}
	return fmt.Sprint(v.Interface())
}

// parsed is what a compiler makes of a line of kept.
func parsed(t *testing.T, line string) (k keptSchedule, vector []byte) {
	t.Helper()
	e, err := parser.ParseExpr("keptSchedule" + strings.TrimSuffix(line, ","))
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	for _, element := range e.(*ast.CompositeLit).Elts {
		switch kv := element.(*ast.KeyValueExpr); kv.Key.(*ast.Ident).Name {
		case "was":
			k.was = evaluated(t, kv.Value, reflect.TypeFor[string]()).String()
		case "of":
			as := reflect.TypeFor[Config]()
			if kv.Value.(*ast.CompositeLit).Type.(*ast.Ident).Name == "Bout" {
				as = reflect.TypeFor[Bout]()
			}
			k.of = evaluated(t, kv.Value, as).Interface().(setting)
		case "vector":
			k.vector = evaluated(t, kv.Value, reflect.TypeFor[string]()).String()
		}
	}
	return k, k.choices(t)
}

// evaluated is the value of an expression.
func evaluated(t *testing.T, e ast.Expr, as reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(as).Elem()
	switch e := e.(type) {
	case *ast.CompositeLit:
		for _, element := range e.Elts {
			if kv, is := element.(*ast.KeyValueExpr); is {
				f := v.FieldByName(kv.Key.(*ast.Ident).Name)
				f.Set(evaluated(t, kv.Value, f.Type()))
			} else {
				v.Set(reflect.Append(v, evaluated(t, element, as.Elem())))
			}
		}
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			if err != nil {
				t.Fatal(err)
			}
			v.SetString(text)
			break
		}
		n, err := strconv.Atoi(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		v.Set(reflect.ValueOf(n).Convert(as))
	case *ast.Ident:
		if n, is := named[e.Name]; is {
			v.Set(reflect.ValueOf(n))
		} else {
			v.SetBool(e.Name == "true")
		}
	default:
		t.Fatalf("what is %T", e)
	}
	return v
}

// keepable wants a schedule that was played to be the same when it is played as what would be printed of it, had it failed.
func keepable(t *testing.T, name string, of setting, vector []byte, trace string) {
	t.Helper()
	text := line(of, vector, fmt.Errorf("R-S1: %q", name)) //nolint:err113 // none happened
	k, kept := parsed(t, text)
	if !reflect.DeepEqual(k.of, of) {
		t.Errorf("%s: what is printed is not all of it: %s", name, text)
	}
	var again strings.Builder
	if err := k.of.replay(kept, &again); err != nil {
		t.Errorf("%s: %v: %s", name, err, text)
	}
	if trace != again.String() {
		t.Errorf("%s: what is printed is not what was played: %s\n%s\n---\n%s", name, text, trace, again.String())
	}
}

// mostKeepable is how many schedules of each campaign are played again as they would be kept.
const mostKeepable = 3

// keepableBouts wants the same of bouts: of each that it is printed as it is, of a few that it is played so.
func keepableBouts(t *testing.T, bouts []*Bout, faults int) {
	t.Helper()
	for i, of := range bouts {
		b := *of
		b.Faults, b.Switches, b.Settles = faults, faults+1, true
		if k, _ := parsed(t, line(b, nil, errFault)); !reflect.DeepEqual(k.of, b) {
			t.Errorf("what is printed is not all of it: %s", line(b, nil, errFault))
		}
		if i%(1+len(bouts)/mostKeepable) > 0 {
			continue
		}
		played, s := b, &Script{Strategy: NewSwarm(uint64(i))}
		played.unreduced = true
		played.Prepare()
		var trace strings.Builder
		played.play.Trace = &trace
		if played.Play(s) == nil {
			keepable(t, fmt.Sprint("scope ", i), b, s.Vector(), trace.String())
		}
		played.Close()
	}
}
