// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

var served = []string{"openshift-machine-api"}

// versions are those of some kinds; the others are of the Machine API.
var versions = map[string]string{
	"Node": "v1", "CertificateSigningRequest": "certificates.k8s.io/v1", "MachineAutoscaler": "autoscaling.openshift.io/v1beta1",
	"ClusterAutoscaler": "autoscaling.openshift.io/v1",
}

func reference(kind, namespace, name string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"kind":"Ignored"}`))
	for k, v := range map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "https://api", "Ce-Type": TypeRefPrefix + "update",
		"Ce-Apiversion": cmp.Or(versions[kind], "machine.openshift.io/v1beta1"), "Ce-Kind": kind, "Ce-Namespace": namespace, "Ce-Name": name,
		"Content-Type": "application/json",
	} {
		if v != "" {
			r.Header.Set(k, v)
		}
	}
	return r
}

func TestParse(t *testing.T) {
	t.Parallel()
	ping := reference("Machine", "", "")
	ping.Header.Set("Ce-Type", TypePing)
	unknown := reference("Machine", served[0], "worker-a")
	unknown.Header.Set("Ce-Type", "com.example.other")
	huge := httptest.NewRequest(http.MethodPost, "/", io.LimitReader(zeros{}, maxBody+10))
	huge.Header.Set("Content-Type", "application/cloudevents+json")
	structured := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(
		`{"specversion":"1.0","id":"2","source":"x","type":"dev.knative.apiserver.ref.add","apiversion":"v1","kind":"Node","name":"n1"}`))
	structured.Header.Set("Content-Type", "application/cloudevents+json")

	wordy, many := reference("Machine", served[0], "worker-a"), reference("Machine", served[0], "worker-a")
	wordy.Header.Set("Ce-Traceparent", strings.Repeat("0", maxHeader))
	for i := range maxHeader / 16 {
		many.Header.Add("X-Any", fmt.Sprint(i, "            "))
	}

	request := reference("CertificateSigningRequest", "", "node-csr-c69HXe7_YcqkS1b-")

	for _, tt := range []struct {
		name    string
		request *http.Request
		want    string // kind namespace name, or the start of an error
	}{
		{"a machine", reference("Machine", served[0], "worker-a"), "Machine openshift-machine-api worker-a"},
		{"a node in structured mode", structured, "Node  n1"},
		{"a tick", ping, "  "},
		{"a namespace that is not served", reference("Machine", "kube-system", "worker-a"), `malformed event: namespace "kube-system" is not served`},
		{"a name with capitals", reference("Machine", served[0], "Worker"), `malformed event: name "Worker"`},
		{"a request as kubelets name it", request, "CertificateSigningRequest  node-csr-c69HXe7_YcqkS1b-"},
		{"a path in a name", reference("Machine", served[0], "../../secrets/x"), `malformed event: name "../../secrets/x"`},
		{"a kind that is none", reference("machine/status", served[0], "a"), `malformed event: kind "machine/status"`},
		{"another type", unknown, `malformed event: type "com.example.other"`},
		{"no event at all", httptest.NewRequest(http.MethodPost, "/", nil), "malformed event: "},
		{"too large", huge, "malformed event: "},
		{"a header too large", wordy, "malformed event: headers of 16"},
		{"too many headers", many, "malformed event: headers of 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, err := Parse(httptest.NewRecorder(), tt.request, served, nil)
			got := fmt.Sprintf("%s %s %s", e.Kind, e.Namespace, e.Name)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Of whatever object an event is, what says which one is refused unless an API server can have sent it: it comes to stand in the path of a
// request (RELIABILITY G1). A namespace is served, or is not, by its whole name.
func TestWhatSaysWhichObjectIsWhatCanBe(t *testing.T) {
	t.Parallel()
	for header, values := range map[string][]string{
		"Ce-Name": {
			"a/b", "../a", "a/..", ".", "..", "-a", "a b", "a?b", "a#b", "a%2fb", `a\b`, "a:b", "a@b", "ä", strings.Repeat("a", 254),
		},
		"Ce-Kind":       {"machine", "Machine/status", "Machine.v1", "Machine-Set", "Machine status", "1Machine", "Mächine", "M" + strings.Repeat("a", 63)},
		"Ce-Apiversion": {"a/b/v1", "../v1", "/v1", "v1/", "v1/../secrets", "apps/V1", "apps/v", "apps/v1 ", "apps/v1?x", "apps/v1.1", "Apps/v1", "apps", "apps/v1%2f"},
		"Ce-Namespace":  {"openshift-machine-api-2", "openshift-machine-ap", "Openshift-Machine-Api", "openshift-machine-api/", "a/openshift-machine-api", "openshift-machine-api/.."},
	} {
		for _, value := range values {
			for _, kind := range []string{"Machine", "Node", "MachineSet", "CertificateSigningRequest"} {
				r := reference(kind, served[0], "worker-a")
				r.Header.Set(header, value)
				if e, err := Parse(httptest.NewRecorder(), r, served, nil); !errors.Is(err, ErrMalformed) {
					t.Errorf("%s %q of a %s: %+v, error %v", header, value, kind, e, err)
				}
			}
		}
	}
	for _, kind := range []string{"Machine", "Node", "MachineSet"} { // requests of kubelets alone are named so
		for _, name := range []string{"Worker", "node-csr-c69HXe7_YcqkS1b", "a_b", "a-", "a."} {
			if e, err := Parse(httptest.NewRecorder(), reference(kind, served[0], name), served, nil); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s %q: %+v, error %v", kind, name, e, err)
			}
		}
	}
}

// A version that nobody here knows of a kind is refused: its objects are other ones, or mean something else (RELIABILITY 2g). All that
// triggers wait for are known, in both APIs of health checks, and so are kinds that functions have no word for.
func TestVersionsOfAKindAreKnown(t *testing.T) {
	t.Parallel()
	const of = " of kind Machine, want machine.openshift.io/v1beta1"
	for _, tt := range []struct{ version, kind, want string }{
		{"machine.openshift.io/v1beta1", "Machine", ""},
		{"machine.openshift.io/v1beta1", "MachineSet", ""},
		{"machine.openshift.io/v1beta1", "MachineHealthCheck", ""},
		{"healthchecking.openshift.io/v1alpha1", "MachineHealthCheck", ""},
		{"autoscaling.openshift.io/v1beta1", "MachineAutoscaler", ""},
		{"autoscaling.openshift.io/v1", "ClusterAutoscaler", ""},
		{"certificates.k8s.io/v1", "CertificateSigningRequest", ""},
		{"v1", "Node", ""},
		{"autoscaling.x-k8s.io/v1alpha1", "CapacityBuffer", ""},
		{"machine.openshift.io/v1beta2", "Machine", `malformed event: apiversion "machine.openshift.io/v1beta2"` + of},
		{"cluster.x-k8s.io/v1beta1", "Machine", `malformed event: apiversion "cluster.x-k8s.io/v1beta1"` + of},
		{"v1", "Machine", `malformed event: apiversion "v1"` + of},
		{"v1beta9", "Node", `malformed event: apiversion "v1beta9" of kind Node, want v1`},
		{"autoscaling.openshift.io/v1", "MachineAutoscaler", `malformed event: apiversion "autoscaling.openshift.io/v1" of kind MachineAutoscaler, want autoscaling.openshift.io/v1beta1`},
		{"healthchecking.openshift.io/v1", "MachineHealthCheck", `malformed event: apiversion "healthchecking.openshift.io/v1" of kind MachineHealthCheck, want machine.openshift.io/v1beta1 or healthchecking.openshift.io/v1alpha1`},
	} {
		r := reference(tt.kind, "", "worker-a")
		r.Header.Set("Ce-Apiversion", tt.version)
		_, err := Parse(httptest.NewRecorder(), r, served, nil)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want || Status(err) != http.StatusBadRequest) {
			t.Errorf("%s %s: %v, want %q", tt.version, tt.kind, err, tt.want)
		}
	}
}

// A body is read to its limit and not on, whoever sends it: 64 kB, and 1 MiB where questions are asked, one of these at a time
// (RELIABILITY 2g).
func TestBodiesAreReadToTheirLimit(t *testing.T) {
	t.Parallel()
	free, taken := make(chan struct{}, 1), make(chan struct{}, 1)
	taken <- struct{}{}
	for _, c := range []struct {
		name       string
		large      chan struct{}
		size, most int
		status     int
	}{
		{"an event", nil, 16 * maxQuestion, maxBody, http.StatusBadRequest},
		{"an event that just fits", nil, maxBody, maxBody, http.StatusAccepted},
		{"one byte more", nil, maxBody + 1, maxBody + 1, http.StatusBadRequest},
		{"a question", free, 16 * maxQuestion, maxQuestion, http.StatusBadRequest},
		{"a question that just fits", free, maxQuestion, maxQuestion, http.StatusAccepted},
		{"a large one beside another", taken, maxQuestion, maxBody, http.StatusTooManyRequests},
		{"a small one beside a large one", taken, maxBody, maxBody, http.StatusAccepted},
	} {
		for form, r := range map[string]*http.Request{"binary": reference("Machine", served[0], "worker-a"), "structured": httptest.NewRequest(http.MethodPost, "/", nil)} {
			begin, end := "", ""
			if form == "structured" {
				begin = `{"specversion":"1.0","id":"2","source":"x","type":"dev.knative.apiserver.ref.add","apiversion":"v1","kind":"Node","name":"n1","data":"`
				end = `"}`
				r.Header.Set("Content-Type", "application/cloudevents+json")
			}
			body := &counted{Reader: io.MultiReader(strings.NewReader(begin), io.LimitReader(zeros{}, int64(c.size-len(begin)-len(end))), strings.NewReader(end))}
			r.Body = io.NopCloser(body)
			_, err := Parse(httptest.NewRecorder(), r, served, c.large)
			if Status(err) != c.status || body.n > c.most+1024 {
				t.Errorf("%s, %s: %d bytes of %d were read, error %v", c.name, form, body.n, c.size, err)
			}
		}
	}
	if len(free) > 0 {
		t.Error("a place is not given back")
	}
}

type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestStatus(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, http.StatusAccepted},
		{"something failed that may pass", broken, http.StatusServiceUnavailable},
		{"to be repeated", &RetryError{Err: broken}, http.StatusServiceUnavailable},
		{"busy", &RetryError{Busy: true, Err: broken}, http.StatusTooManyRequests},
		{"slow", fmt.Errorf("%w: x", ErrSlow), http.StatusRequestTimeout},
		{"malformed", fmt.Errorf("%w: x", ErrMalformed), http.StatusBadRequest},
		{"panic", fmt.Errorf("%w: x", ErrPanic), http.StatusInternalServerError},
		{"from somebody else", fmt.Errorf("%w: x", ErrUnauthorized), http.StatusUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Status(tt.err); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// An error's text may hold what nobody else shall read: brokers copy bodies into dead letters.
func TestReplyNeverTellsTheError(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	err := &RetryError{After: 1500 * time.Millisecond, Err: errors.New("password hunter2 refused")}
	if err := Reply(t.Context(), w, "1", nil, err); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(w.Body.String(), "hunter2") || w.Header().Get("Retry-After") != "2" {
		t.Errorf("body %q, Retry-After %q", w.Body, w.Header().Get("Retry-After"))
	}
}

// Who asks a question is told what of it is wrong, and nothing of what else went wrong.
func TestRefusedQuestionSaysWhatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int
		body string
	}{
		{fmt.Errorf("%w: pods[1]: spec.priorityClassName \"batch\" is not looked up: say priority", ErrMalformed), 400, "malformed event: pods[1]: spec.priorityClassName \"batch\" is not looked up: say priority\n"},
		{fmt.Errorf("%w: %s", ErrMalformed, strings.Repeat("x", 2*maxRefusal)), 400, "malformed event: " + strings.Repeat("x", maxRefusal-len("malformed event: ")) + "\n"},
		{&RetryError{Err: errors.New("password hunter2 refused")}, 503, "Service Unavailable"},
	} {
		w := httptest.NewRecorder()
		if err := Refuse(t.Context(), w, c.err); err != nil || w.Code != c.code || w.Body.String() != c.body {
			t.Errorf("%v: %d %q, error %v", c.err, w.Code, w.Body, err)
		}
	}
}

func TestReplyIsTheDecision(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	d := &Decision{Function: "link-node", Subject: "machine/a", Plan: strings.Repeat("ä", maxReply)}
	if err := Reply(t.Context(), w, "1.link-node", d, nil); err != nil {
		t.Fatal(err)
	}
	switch {
	case w.Code != http.StatusOK || w.Header().Get("Ce-Type") != "machine.link-node.decided" || w.Header().Get("Ce-Subject") != "machine/a":
		t.Errorf("code %d, headers %v", w.Code, w.Header())
	case !bytes.Contains(w.Body.Bytes(), []byte(`"function":"link-node"`)) || w.Body.Len() > maxReply+200:
		t.Errorf("body of %d bytes", w.Body.Len())
	}
}

// A shadow is woken by the same events as the one that works, and whoever gets two events of one source and id may take them for one.
func TestDecisionsOfADryRunHaveASourceOfTheirOwn(t *testing.T) {
	t.Parallel()
	var sources []string
	for _, dry := range []bool{false, true} {
		w := httptest.NewRecorder()
		if err := Reply(t.Context(), w, "1.link-node", &Decision{Function: "link-node", DryRun: dry, Plan: "x"}, nil); err != nil {
			t.Fatal(err)
		}
		sources = append(sources, w.Header().Get("Ce-Source"))
	}
	if want := []string{"/functions/link-node", "/functions/link-node/dry-run"}; !slices.Equal(sources, want) {
		t.Errorf("sources %q, want %q", sources, want)
	}
}

// A quiet decision is acknowledged without a body: a 2xx with a body that is no event is
// delivered again.
func TestReplyOfAQuietDecisionHasNoBody(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := Reply(t.Context(), w, "1", nil, nil); err != nil || w.Code != http.StatusAccepted || w.Body.Len() != 0 {
		t.Errorf("%v: code %d, body %q", err, w.Code, w.Body)
	}
}

// Only a question brings data, and no object: what wakes functions stays a hint (RELIABILITY G1).
func TestOnlyQuestionsCarryData(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{TypeSimulate: `{"pods":[]}`, TypePing: "", TypeRefPrefix + "add": ""} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"pods":[]}`))
		for key, value := range map[string]string{
			"Ce-Id": "1", "Ce-Source": "x", "Ce-Specversion": "1.0", "Ce-Type": kind, "Content-Type": "application/json",
			"Ce-Kind": "Machine", "Ce-Apiversion": "machine.openshift.io/v1beta1", "Ce-Namespace": served[0], "Ce-Name": "worker-a",
		} {
			r.Header.Set(key, value)
		}
		e, err := Parse(httptest.NewRecorder(), r, served, nil)
		if err != nil || string(e.Question) != want || kind == TypeSimulate && (e.Name != "" || e.Tick()) {
			t.Errorf("%s: %+v, error %v", kind, e, err)
		}
	}
}

// What a stranger sends is told of by its beginning: a refusal is logged, each time.
func TestRefusalsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`\"`, 20<<10)
	for name, body := range map[string]string{
		"type":       `"type":"` + long + `"`,
		"name":       `"type":"dev.knative.apiserver.ref.update","apiversion":"v1","kind":"Node","name":"` + long + `"`,
		"kind":       `"type":"dev.knative.apiserver.ref.update","apiversion":"v1","name":"a","kind":"` + long + `"`,
		"apiversion": `"type":"dev.knative.apiserver.ref.update","name":"a","kind":"Node","apiversion":"` + long + `"`,
		"namespace":  `"type":"dev.knative.apiserver.ref.update","apiversion":"v1","name":"a","kind":"Node","namespace":"` + long + `"`,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"specversion":"1.0","id":"1","source":"/x",`+body+`}`))
		r.Header.Set("Content-Type", "application/cloudevents+json")
		if _, err := Parse(httptest.NewRecorder(), r, served, nil); err == nil || len(err.Error()) > 250 || !strings.Contains(err.Error(), name) {
			t.Errorf("a long %s: %.300v", name, err)
		}
	}
}

// A structured event is read in one way: whatever another reader could understand otherwise is refused (RELIABILITY §4, inputs).
func TestStructuredEventsAreReadInOneWay(t *testing.T) {
	t.Parallel()
	const node = `"specversion":"1.0","id":"1","source":"/x","type":"dev.knative.apiserver.ref.update","apiversion":"v1","kind":"Node","name":"a"`
	nested := func(deep int) string {
		return strings.Repeat(`[{"a":`, deep/2) + `"[[{{\\\"[["` + strings.Repeat("}]", deep/2)
	}
	for body, want := range map[string]string{
		`{` + node + `}`: "",
		` {` + node + `,"traceparent":"00-x","datacontenttype":"application/json","data_base64":"e30="} `: "",
		`{` + node + `,"data":` + nested(60) + `}`:                                                        "",
		`{` + node + `,"data":` + nested(64) + `}`:                                                        "deeper than 64",
		`{` + node + `,"data":` + nested(10000) + `}`:                                                     "deeper than 64",
		`{` + node + `,"name":"b"}`:                                                                       `"name"`,
		`{` + node + `,"type":"dev.knative.sources.ping"}`:                                                `"type"`,
		`{` + node + `,"specversion":"0.3"}`:                                                              `"specversion"`,
		`{` + node + `,"Name":"b"}`:                                                                       `"Name"`,
		`{` + node + `,"\u006eame":"b"}`:                                                                  `"name"`,
		`{` + node + `,"data":{},"data":[]}`:                                                              `"data"`,
		`{` + node + `} {}`:                                                                               "",
		`[` + node + `]`:                                                                                  "",
		`{"` + strings.Repeat("L", 1000) + `":1,` + node + `}`:                                            `"LLL`,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/cloudevents+json; charset=UTF-8")
		e, err := Parse(httptest.NewRecorder(), r, served, nil)
		good := want == "" && strings.HasSuffix(strings.TrimSpace(body), "}") && !strings.HasSuffix(body, "{}")
		if good && (err != nil || e.Name != "a") || !good && (!errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), want) || len(err.Error()) > 250) {
			t.Errorf("%.300s: %+v, error %.300v", body, e, err)
		}
	}
}
