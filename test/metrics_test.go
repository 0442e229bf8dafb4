// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	rowOfMetrics   = regexp.MustCompile(`(?m)^\| C79 \| Metrics \(prefix .+?\): (.+?)\. Address`)
	metricInCode   = regexp.MustCompile(`"cluster_autoscaler_(\w+)"`)
	metricsTold    = regexp.MustCompile(`(?s)\n\| metric \| labels \|\n\|---\|---\|\n\| .unschedulable_pods_count(.+?)\n\n`)
	metricsLeftOut = regexp.MustCompile(`(?s)\n\| not told \| because \|\n\|---\|---\|\n(.+?)\n\n`)
	labelsOfMetric = regexp.MustCompile(`\{[^}]*\}`)
)

// Every metric of row C79 is told, or docs/metrics.md says why not; and what that document says is told is what the code tells.
func TestMetricsOfTheAutoscalerAreToldOrExcused(t *testing.T) {
	t.Parallel()
	document := text(t, filepath.Join("..", "docs", "metrics.md"))
	table := func(of *regexp.Regexp) set {
		names := set{}
		for line := range strings.SplitSeq(of.FindString(document), "\n") {
			first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
			for _, m := range quoted.FindAllStringSubmatch(first, -1) {
				names[strings.Replace(m[1], "…", "node_group", 1)] = true
			}
		}
		return names
	}
	told, excused := table(metricsTold), table(metricsLeftOut)
	code := set{}
	files, err := filepath.Glob("../shared/metrics/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range metricInCode.FindAllStringSubmatch(text(t, file), -1) {
			code[m[1]] = true
		}
	}
	if diff := cmp.Diff(told.sorted(), code.sorted()); diff != "" {
		t.Errorf("docs/metrics.md does not say what is told (-document +code):\n%s", diff)
	}
	both := set{}
	for name := range told {
		both[name] = true
		if excused[name] {
			t.Errorf("%s is told, and excused", name)
		}
	}
	for name := range excused {
		both[name] = true
	}
	if diff := cmp.Diff(metricsOfRow(t).sorted(), both.sorted()); diff != "" {
		t.Errorf("neither told nor excused, or in no row (-row +document):\n%s", diff)
	}
}

// metricsOfRow reads the row, which leaves out what several names in a row begin with.
func metricsOfRow(t *testing.T) set {
	t.Helper()
	row := rowOfMetrics.FindStringSubmatch(text(t, filepath.Join("..", "docs", "SPEC.md")))
	if row == nil {
		t.Fatal("there is no row C79")
	}
	names := set{}
	for name := range strings.SplitSeq(labelsOfMetric.ReplaceAllString(row[1], ""), ", ") {
		if strings.HasPrefix(name, "_") {
			name = "node_group" + name
		}
		if made, rest, both := strings.Cut(name, "/deleted"); both {
			names[made+rest], name = true, "deleted"+rest
		}
		names[name] = true
	}
	if len(names) < 35 {
		t.Fatalf("the row names %d metrics only: %v", len(names), names.sorted())
	}
	return names
}
