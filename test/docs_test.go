// SPDX-License-Identifier: Apache-2.0

package test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/guards"
)

var (
	testDefined = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	testNamed   = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*…?`)
	fileNamed   = regexp.MustCompile(`[a-z_]+_test\.go`)
	guardsNamed = regexp.MustCompile("\\bguards? `[a-z-]+`(?:, `[a-z-]+`)*")
	packagesOf  = regexp.MustCompile("`([a-z0-9/-]+/[a-z0-9-]+)`:? ((?:(?:Test|Fuzz)\\w+(?:, )?)+)")
	callOfAWS   = regexp.MustCompile(`\b(ec2|elb|elbv2)\.([A-Z]\w+)Input\b`)
	quoted      = regexp.MustCompile("`([^`]+)`")
	kubectlOn   = regexp.MustCompile("kubectl (?:-n \\S+ |--\\S+ )*(?:get|describe|scale|annotate|label|patch|edit|delete|wait) (?:--\\S+ )*([^\\s`]+)")
)

// A test, or a file of tests, that a document names is there: who reads that something is tested can look.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	files, tests := set{}, set{}
	if err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "build", "testdata"}, d.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		files[d.Name()] = true
		for _, m := range testDefined.FindAllSubmatch(source, -1) {
			tests[string(m[1])] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../docs/*.md")
	if err != nil || len(more) < 10 {
		t.Fatalf("%d documents, error %v", len(more), err)
	}
	for _, document := range append(documents, more...) {
		words := text(t, document)
		for _, name := range fileNamed.FindAllString(words, -1) {
			if !files[name] {
				t.Errorf("%s: there is no %s", document, name)
			}
		}
		for _, name := range testNamed.FindAllString(words, -1) {
			begun, several := strings.CutSuffix(name, "…")
			if !tests[name] && (!several || !slices.ContainsFunc(tests.sorted(), func(one string) bool { return strings.HasPrefix(one, begun) })) {
				t.Errorf("%s: there is no %s", document, name)
			}
		}
	}
}

// What a document has people tell kubectl is about our objects also where Cluster API has kinds of the same names, which kubectl takes
// for meant: it takes the first group in the alphabet.
func TestDocumentsTellKubectlTheGroup(t *testing.T) {
	t.Parallel()
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shared, found := []string{"machine", "machines", "machineset", "machinesets", "machinehealthcheck", "machinehealthchecks", "mhc"}, 0
	for _, document := range append(documents, "../README.md") {
		for _, m := range kubectlOn.FindAllStringSubmatch(text(t, document), -1) {
			for kind := range strings.SplitSeq(m[1], ",") {
				kind, _, _ = strings.Cut(kind, "/")
				name, group, _ := strings.Cut(kind, ".")
				if slices.Contains(shared, name) {
					found++
					if group != "machine.openshift.io" {
						t.Errorf("%s: %q says nothing of the group", document, m[0])
					}
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d are found", found)
	}
}

// Whoever makes a key for EC2 reads which calls it has to allow: each that the driver can make is named.
func TestRightsOnAWSAreNamed(t *testing.T) {
	t.Parallel()
	document := text(t, filepath.Join("..", "docs", "aws-semantics.md"))
	files, err := filepath.Glob("../shared/provider/aws/*.go")
	if err != nil {
		t.Fatal(err)
	}
	called := set{}
	for _, file := range files {
		for _, m := range callOfAWS.FindAllStringSubmatch(text(t, file), -1) {
			called[map[string]string{"ec2": "ec2:", "elb": "elasticloadbalancing:", "elbv2": "elasticloadbalancing:"}[m[1]]+m[2]] = true
		}
	}
	for _, call := range called.sorted() {
		if !strings.Contains(document, "`"+call+"`") {
			t.Errorf("docs/aws-semantics.md does not say that the driver asks for %s", call)
		}
	}
	if len(called) < 20 {
		t.Errorf("only %q are found", called.sorted())
	}
}

// Each threat names what would fail if nothing stood against it any more: tests, in the packages where they are, guards, scenarios.
func TestThreatsNameTheirTests(t *testing.T) {
	t.Parallel()
	known := set{}
	for _, g := range guards.All() {
		known[g.Name] = true
	}
	rows := 0
	for line := range strings.Lines(text(t, "../docs/THREAT_MODEL.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[3]) == "test" {
			continue
		}
		rows++
		threat, tests := strings.TrimSpace(cells[0]), cells[3]
		if !testNamed.MatchString(tests) && !guardsNamed.MatchString(tests) && !strings.Contains(tests, " testdata") {
			t.Errorf("%s: no test is named", threat)
		}
		for _, some := range guardsNamed.FindAllString(tests, -1) {
			for _, name := range quoted.FindAllStringSubmatch(some, -1) {
				if !known[name[1]] {
					t.Errorf("%s: there is no guard %s", threat, name[1])
				}
			}
		}
		for _, named := range packagesOf.FindAllStringSubmatch(tests, -1) {
			all := testsIn(t, "../"+named[1])
			for _, name := range testNamed.FindAllString(named[2], -1) {
				if !all[name] {
					t.Errorf("%s: %s has no %s", threat, named[1], name)
				}
			}
		}
	}
	if rows < 15 {
		t.Errorf("%d threats are found", rows)
	}
}

// testsIn returns the tests of one package.
func testsIn(t *testing.T, dir string) set {
	t.Helper()
	files, err := filepath.Glob(dir + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	all := set{}
	for _, file := range files {
		for _, m := range testDefined.FindAllStringSubmatch(text(t, file), -1) {
			all[m[1]] = true
		}
	}
	return all
}

// tellers are the functions that make an Event: by these names, and with its reason as their first word in quotes.
var (
	tellers = []string{"Warning", "Normal", "warning", "normal", "note", "tell"}
	reason  = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
)

// The reason of every Event that a function tells is on a page: who sees it in kubectl finds what it means.
func TestReasonsOfEventsAreDocumented(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	words := set{}
	for _, p := range pages {
		for _, word := range regexp.MustCompile(`[A-Za-z]+`).FindAllString(text(t, p), -1) {
			words[word] = true
		}
	}
	told := set{}
	for _, s := range load(t, os.DirFS("..")).golang() {
		if s.test() || !strings.HasPrefix(s.path, "functions/") {
			continue
		}
		for n := range ast.Preorder(s.Go) {
			if r := reasonIn(n); r != "" {
				told[r] = true
			}
		}
	}
	if len(told) < 40 {
		t.Errorf("only %d reasons are found", len(told))
	}
	for _, r := range told.minus(words) {
		t.Errorf("Events have the reason %s, which no page has", r)
	}
}

// reasonIn returns the reason of the Event that n makes, or nothing.
func reasonIn(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	name := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
	case *ast.Ident:
		name = f.Name
	}
	if !slices.Contains(tellers, name) {
		return ""
	}
	for _, a := range call.Args {
		if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if r, err := strconv.Unquote(lit.Value); err == nil && reason.MatchString(r) {
				return r
			}
			return ""
		}
	}
	return ""
}

// What a page says of the flood is what the evidence has, which is written anew by each: who measures again tells of it again.
func TestFloodIsToldAsItWasMeasured(t *testing.T) {
	t.Parallel()
	evidence := text(t, "../docs/evidence/load-events.txt")
	_, page, found := strings.Cut(text(t, "../docs/without-a-leader.md"), "\n## What a flood does\n")
	page, _, ends := strings.Cut(page, "\n## ")
	broker, functions, both := strings.Cut(evidence, "\nstraight at the functions:")
	if !found || !ends || !both {
		t.Fatal("the page has no such chapter, or the evidence not both parts")
	}
	said := func(part, pattern string) string {
		t.Helper()
		m := regexp.MustCompile(pattern).FindStringSubmatch(part)
		if m == nil {
			t.Fatalf("the evidence has no %s", pattern)
		}
		return m[1]
	}
	count := func(part, pattern string) float64 {
		t.Helper()
		n, err := strconv.ParseFloat(said(part, pattern), 64)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	number := func(n float64) string {
		digits := strconv.Itoa(int(n))
		if len(digits) > 3 {
			digits = digits[:len(digits)-3] + "," + digits[len(digits)-3:]
		}
		return digits
	}
	within := func(part, pattern string) string {
		t.Helper()
		d, err := time.ParseDuration(said(part, pattern))
		if err != nil {
			t.Error(err)
		}
		return strconv.FormatFloat(math.Ceil(d.Seconds()*10)/10, 'f', -1, 64) + " s"
	}
	letters := "no letter was dead"
	if list := said(evidence, `\ndead letters: (.*)`); list != "none" {
		dead := 0.0
		for one := range strings.SplitSeq(list, ", ") {
			dead += count(one, `^(\d+)`)
		}
		letters = number(dead) + " letters were dead"
	}
	turned := "none was turned away"
	if strings.Contains(functions, "answered 429") {
		turned = number(count(functions, `answered 429 Too Many Requests +(\d+)`)) + " were turned away"
	}
	for _, words := range []string{
		"wanted " + within(evidence, `converged (\S+) after`) + " after the last event",
		number(count(functions, ` (\d+)/s of 1000/s`)) + " events a second",
		"half were answered within " + within(functions, `p50 ([0-9.]+m?s)`),
		"99 % within " + within(functions, `p99 ([0-9.]+m?s)`),
		"all within " + within(functions, `at most ([0-9.]+m?s)`),
		turned,
		number(count(functions, `answered by a killed process +(\d+)`)) + " whose process was killed",
		"needed " + number(math.Round(count(functions, `(\d+) invocations`)/1000)*1000),
		"the Broker took " + number(count(broker, `answered 202 Accepted +(\d+)`)/180) + " and refused the others (500), all within " + within(broker, `a request took .* at most ([0-9.]+m?s)`),
		"took nothing for " + within(broker, `no event was taken: ([0-9.]+m?s)`),
		letters,
	} {
		if !strings.Contains(strings.Join(strings.Fields(page), " "), words) {
			t.Errorf("without-a-leader.md does not say %q", words)
		}
	}
}
