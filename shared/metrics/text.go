// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// contentType is that of Prometheus' text format. The SDK's own exporter brings a second implementation of everything
// and 2.4 MB with it; the format is a page.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// ServeHTTP answers a scrape. Without metrics there is nothing to be found.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m == nil {
		http.NotFound(w, r)
		return
	}
	var all metricdata.ResourceMetrics
	if err := m.reader.Collect(r.Context(), &all); err != nil {
		http.Error(w, "collect metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	var text bytes.Buffer
	for _, scope := range all.ScopeMetrics {
		slices.SortFunc(scope.Metrics, func(a, b metricdata.Metrics) int { return strings.Compare(a.Name, b.Name) })
		for _, one := range scope.Metrics {
			write(&text, one)
		}
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(text.Bytes()) // who asked may be gone by now
}

// write renders one metric with all its series, sorted.
func write(text *bytes.Buffer, one metricdata.Metrics) {
	kind, series := "", []string(nil)
	switch data := one.Data.(type) {
	case metricdata.Gauge[float64]:
		kind = "gauge"
		for _, p := range data.DataPoints {
			series = append(series, line(one.Name, labels(p.Attributes), number(p.Value)))
		}
	case metricdata.Sum[int64]:
		kind = "counter"
		for _, p := range data.DataPoints {
			series = append(series, line(one.Name, labels(p.Attributes), strconv.FormatInt(p.Value, 10)))
		}
	case metricdata.Histogram[float64]:
		kind = "histogram"
		for _, p := range data.DataPoints {
			series = append(series, buckets(one.Name, p))
		}
	}
	if len(series) == 0 {
		return
	}
	slices.Sort(series)
	fmt.Fprintf(text, "# HELP %s %s\n# TYPE %s %s\n", one.Name, one.Description, one.Name, kind)
	for _, s := range series {
		text.WriteString(s)
	}
}

// buckets renders one histogram. Each bucket counts what is in those below it too.
func buckets(name string, p metricdata.HistogramDataPoint[float64]) string {
	var text strings.Builder
	at := labels(p.Attributes)
	below := uint64(0)
	for i, n := range p.BucketCounts {
		bound := math.Inf(1)
		if i < len(p.Bounds) {
			bound = p.Bounds[i]
		}
		below += n
		text.WriteString(line(name+"_bucket", append(slices.Clone(at), `le="`+number(bound)+`"`), strconv.FormatUint(below, 10)))
	}
	text.WriteString(line(name+"_sum", at, number(p.Sum)))
	text.WriteString(line(name+"_count", at, strconv.FormatUint(p.Count, 10)))
	return text.String()
}

func line(name string, labels []string, value string) string {
	if len(labels) > 0 {
		name += "{" + strings.Join(labels, ",") + "}"
	}
	return name + " " + value + "\n"
}

// escape is what the format asks of a label's value.
var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labels renders labels; those of our own instruments are valid as they are, OpenTelemetry's have dots.
func labels(set attribute.Set) []string {
	all := make([]string, 0, set.Len())
	for i := set.Iter(); i.Next(); {
		kv := i.Attribute()
		all = append(all, strings.ReplaceAll(string(kv.Key), ".", "_")+`="`+escape.Replace(kv.Value.String())+`"`)
	}
	return all
}

func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
