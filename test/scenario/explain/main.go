// SPDX-License-Identifier: Apache-2.0

// Package main tells how a scenario is decided: what the function asked for, what it was shown, what it wants.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	function "github.com/machine-functions/machine-functions"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: explain functions/<name>/testdata/<scenario>.txtar")
		os.Exit(2)
	}
	if err := explain(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func explain(file string) error {
	name := filepath.Base(filepath.Dir(filepath.Dir(file)))
	f, ok := function.Named(name)
	if !ok {
		return fmt.Errorf("%s: the folder %q is no function's", file, name)
	}
	s, _, err := scenario.Load(file)
	if err != nil {
		return err
	}
	seen, asked, err := scenario.Observe(f, s)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\n%s, woken by %s at %s\n", s.Story, name, waker(seen.Request), seen.Now.Format("2006-01-02T15:04:05Z"))
	for i, sc := range asked {
		fmt.Printf("reading %d asks for %s\n", i+1, strings.Join(questions(sc), ", "))
	}
	fmt.Println("and sees")
	for o := range seen.Objects() {
		fmt.Printf("  %s\n", plan.NameOf(o))
	}
	p := f.Decide(seen)
	if text := p.String(); text != "" {
		fmt.Printf("so it wants\n%s", indent(text))
		return nil
	}
	fmt.Println("so it wants nothing")
	return nil
}

func waker(r snapshot.Request) string {
	if r.Scan() {
		return "the clock"
	}
	return plan.Name(plan.Kind(r.Kind), r.Namespace, r.Name)
}

func questions(sc snapshot.Scope) []string {
	var all []string
	for _, q := range sc.Objects {
		name := q.Name
		if name == "" {
			name = "*"
		}
		all = append(all, plan.Name(q.Kind, q.Namespace, name))
	}
	if n := len(sc.Lookups) + len(sc.Accounts); n > 0 {
		all = append(all, fmt.Sprintf("%d answers of clouds", n))
	}
	return slices.Compact(all)
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
