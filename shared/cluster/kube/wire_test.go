// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const machines = "/apis/machine.openshift.io/v1beta1/namespaces/ns/machines"

// fakeServer answers each request with the next of its answers, and repeats the last.
type fakeServer struct {
	*httptest.Server
	mu      sync.Mutex
	asked   []string
	bodies  []string
	answers []http.HandlerFunc
}

func serve(t *testing.T, answers ...http.HandlerFunc) (*fakeServer, *Cluster) {
	t.Helper()
	f := &fakeServer{answers: answers}
	f.Server = httptest.NewServer(http.HandlerFunc(f.answer))
	t.Cleanup(f.Close)
	return f, connect(t, &rest.Config{Host: f.URL})
}

func connect(t *testing.T, config *rest.Config) *Cluster {
	t.Helper()
	c, err := New(config, Options{FieldManager: "tester", Namespaces: []string{"ns"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (f *fakeServer) answer(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var body strings.Builder
	_ = r.Write(&body)
	f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI())
	_, text, _ := strings.Cut(body.String(), "\r\n\r\n")
	f.bodies = append(f.bodies, text)
	f.answers[min(len(f.asked), len(f.answers))-1](w, r)
}

func reply(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

func status(code int, reason metav1.StatusReason, message string) http.HandlerFunc {
	return reply(code, typeJSON, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message))
}

// page is one page of a list of Machines.
func page(next string, names ...string) http.HandlerFunc {
	var items []string
	for _, n := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns"}}`, n))
	}
	return reply(200, typeJSON, fmt.Sprintf(`{"kind":"MachineList","apiVersion":"machine.openshift.io/v1beta1","metadata":{"continue":%q},"items":[%s]}`,
		next, strings.Join(items, ",")))
}

func observeMachines(t *testing.T, c *Cluster) ([]string, error) {
	t.Helper()
	s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.All("Machine")})
	var names []string
	for _, m := range s.Machines {
		names = append(names, m.Name)
	}
	return names, err
}

func TestListIsPagedAndFresh(t *testing.T) {
	t.Parallel()
	f, c := serve(t, page("one", "a", "b"), page("two", "c"), page("", "d"))
	names, err := observeMachines(t, c)
	if err != nil || !slices.Equal(names, []string{"a", "b", "c", "d"}) {
		t.Errorf("machines %v, error %v", names, err)
	}
	want := []string{"GET " + machines + "?limit=500", "GET " + machines + "?continue=one&limit=500", "GET " + machines + "?continue=two&limit=500"}
	if !slices.Equal(f.asked, want) {
		t.Errorf("asked %q", f.asked)
	}
}

func TestExpiredListBeginsAnew(t *testing.T) {
	t.Parallel()
	expired := status(410, metav1.StatusReasonExpired, "too old")
	for name, ends := range map[string]http.HandlerFunc{"expired": expired, "gone": status(410, metav1.StatusReasonGone, "too old")} {
		_, c := serve(t, page("one", "gone"), ends, page("one", "a"), page("", "b"))
		if names, err := observeMachines(t, c); err != nil || !slices.Equal(names, []string{"a", "b"}) {
			t.Errorf("%s: machines %v, error %v", name, names, err)
		}
	}
	f, c := serve(t, expired)
	if names, err := observeMachines(t, c); err == nil || len(f.asked) != maxListings {
		t.Errorf("machines %v, error %v after %d requests", names, err, len(f.asked))
	}
}

func TestNoListWithoutProof(t *testing.T) {
	t.Parallel()
	cutOff := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", typeJSON)
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"kind":"MachineList"`))
	}
	undated := func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		page("", "a")(w, r)
	}
	list := `{"kind":"MachineList","apiVersion":"machine.openshift.io/v1beta1","metadata":{},"items":[%s]}`
	for name, answer := range map[string]http.HandlerFunc{
		"page of a proxy":       reply(200, "text/html", "<html>login</html>"),
		"proxy's not found":     reply(404, "text/html", "<html>not found</html>"),
		"path not served":       reply(404, "text/plain", "404 page not found\n"),
		"resource not found":    status(404, metav1.StatusReasonNotFound, "the server could not find the requested resource"),
		"empty object":          reply(200, typeJSON, `{}`),
		"another kind":          reply(200, typeJSON, strings.Replace(fmt.Sprintf(list, ""), "MachineList", "MachineSetList", 1)),
		"another version":       reply(200, typeJSON, strings.Replace(fmt.Sprintf(list, ""), "v1beta1", "v1", 1)),
		"one object":            reply(200, typeJSON, `{"kind":"Machine","apiVersion":"machine.openshift.io/v1beta1"}`),
		"another's name":        reply(200, typeJSON, `{"kind":"Machine","apiVersion":"machine.openshift.io/v1beta1","metadata":{"name":"b","namespace":"ns"}}`),
		"another namespace's":   reply(200, typeJSON, `{"kind":"Machine","apiVersion":"machine.openshift.io/v1beta1","metadata":{"name":"a","namespace":"b"}}`),
		"null for an item":      reply(200, typeJSON, fmt.Sprintf(list, "null")),
		"text for an item":      reply(200, typeJSON, fmt.Sprintf(list, `"a"`)),
		"no JSON":               reply(200, typeJSON, `{"kind":`),
		"no type":               reply(200, "", fmt.Sprintf(list, "")),
		"object of no type":     reply(200, "text/plain", `{"kind":"Machine","apiVersion":"machine.openshift.io/v1beta1","metadata":{"name":"a","namespace":"ns"}}`),
		"protobuf that is none": reply(200, typeProtobuf, fmt.Sprintf(list, "")),
		"cut off":               cutOff,
		"undated":               undated,
		"forbidden":             status(403, metav1.StatusReasonForbidden, "no"),
		"unauthorized":          status(401, metav1.StatusReasonUnauthorized, "who"),
		"overloaded":            reply(429, "text/plain", "later"),
		"failed":                status(500, metav1.StatusReasonInternalError, "etcd"),
		"success as failure":    reply(404, typeJSON, `{"kind":"Status","apiVersion":"v1","status":"Success","reason":"NotFound"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := serve(t, answer)
			if names, err := observeMachines(t, c); err == nil || len(names) > 0 {
				t.Errorf("machines %v, error %v", names, err)
			}
			_, c = serve(t, page("next", "a"), answer)
			if names, err := observeMachines(t, c); err == nil || len(names) > 0 {
				t.Errorf("as second page: machines %v, error %v", names, err)
			}
			_, c = serve(t, answer)
			q := snapshot.One("Machine", "ns", "a")
			if s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{q}); name != "resource not found" && (err == nil || s.Has(q)) {
				t.Errorf("as one object: %v, error %v", s.Machines, err)
			}
		})
	}
}

func TestAbsenceOfOneObject(t *testing.T) {
	t.Parallel()
	f, c := serve(t, status(404, metav1.StatusReasonNotFound, `machines "a" not found`))
	q := snapshot.One("Machine", "ns", "a")
	s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{q})
	if err != nil || !s.Has(q) || s.Now.IsZero() {
		t.Errorf("now %v, error %v", s.Now, err)
	}
	if want := []string{"GET " + machines + "/a"}; !slices.Equal(f.asked, want) {
		t.Errorf("asked %q", f.asked)
	}
}

// A name that no object can have leads nowhere else: nobody asks for it, and that there is no such object has a time all the same. It
// stands where tenants and people write, as the claim of a Pod does, and must not keep everybody from what else is asked.
func TestNameThatNoObjectCanHave(t *testing.T) {
	t.Parallel()
	for _, q := range []snapshot.Query{snapshot.One("Machine", "ns", "../../secrets"), snapshot.One("Node", "", "a/b"), snapshot.One("PersistentVolumeClaim", "..", "a")} {
		f, c := serve(t, reply(200, typeJSON, `{}`), page("", "a"))
		s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{q, snapshot.All("Machine")})
		if err != nil || !s.Has(q) || s.Now.IsZero() || len(s.Machines) != 1 || s.Machines[0].Name != "a" {
			t.Errorf("%v: machines %v, error %v", q, s.Machines, err)
		}
		if want := []string{"GET /version", "GET " + machines + "?limit=500"}; !slices.Equal(f.asked, want) {
			t.Errorf("%v: asked %q", q, f.asked)
		}
	}
	for _, answer := range []http.HandlerFunc{reply(503, "text/plain", "later"), reply(200, "text/html", "<html>login</html>")} {
		_, c := serve(t, answer)
		q := snapshot.One("Node", "", "a/b")
		if s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{q}); err == nil || s.Has(q) {
			t.Errorf("of a server that says nothing: error %v", err)
		}
	}
}

func TestSelectorsSayOneThing(t *testing.T) {
	t.Parallel()
	f, c := serve(t, reply(200, typeJSON, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`))
	strange := "a,metadata.namespace!=ns"
	queries := []snapshot.Query{{Kind: "Pod", Node: strange}, snapshot.One("Pod", "", strange)}
	if _, err := c.Observe(t.Context(), snapshot.Snapshot{}, queries); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`spec.nodeName=a\,metadata.namespace!\=ns`, `metadata.name=a\,metadata.namespace!\=ns`} {
		asked, err := url.Parse(strings.TrimPrefix(f.asked[i], "GET "))
		if err != nil {
			t.Fatal(err)
		}
		if got := asked.Query().Get("fieldSelector"); got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
	}
}

// A Node's annotation, or a record, may name a Machine where nobody here may look: that one is not there, and keeps nobody
// from seeing the rest.
func TestMachineOfANamespaceThatIsNotServed(t *testing.T) {
	t.Parallel()
	f, c := serve(t, reply(200, typeJSON, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}}`), status(403, metav1.StatusReasonForbidden, "machines is forbidden"))
	q := []snapshot.Query{snapshot.One("Node", "", "a"), snapshot.One("Machine", "elsewhere", "a")}
	s, err := c.Observe(t.Context(), snapshot.Snapshot{}, q)
	if err != nil || !s.Has(q[1]) || len(s.Nodes) != 1 || s.Now.IsZero() {
		t.Errorf("%d nodes at %v, error %v", len(s.Nodes), s.Now, err)
	}
	if want := []string{"GET /api/v1/nodes/a"}; !slices.Equal(f.asked, want) {
		t.Errorf("asked %q", f.asked)
	}
}

func TestAbsenceOfInfrastructures(t *testing.T) {
	t.Parallel()
	notServed := reply(404, "text/plain", "404 page not found\n")
	groups := func(version string) http.HandlerFunc {
		return reply(200, typeJSON, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"config.openshift.io","versions":[{"groupVersion":"config.openshift.io/`+version+`","version":"`+version+`"}]}]}`)
	}
	resources := func(name string) http.HandlerFunc {
		return reply(200, typeJSON, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"config.openshift.io/v1","resources":[{"name":"`+name+`"}]}`)
	}
	for _, tt := range []struct {
		name    string
		answers []http.HandlerFunc
		absent  bool
	}{
		{"no group", []http.HandlerFunc{notServed, reply(200, typeJSON, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)}, true},
		{"another group", []http.HandlerFunc{notServed, reply(200, typeJSON, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`), notServed}, true},
		{"another version", []http.HandlerFunc{notServed, groups("v2")}, true},
		{"another resource", []http.HandlerFunc{notServed, groups("v1"), resources("proxies")}, true},
		{"served after all", []http.HandlerFunc{notServed, groups("v1"), resources("infrastructures")}, false},
		{"a proxy answers everything", []http.HandlerFunc{notServed}, false},
		{"a server that begins", []http.HandlerFunc{reply(503, "text/plain", "starting"), reply(200, typeJSON, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)}, false},
		{"forbidden", []http.HandlerFunc{status(403, metav1.StatusReasonForbidden, "no")}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, q := range []snapshot.Query{snapshot.One("Infrastructure", "", "cluster"), snapshot.All("Infrastructure")} {
				_, c := serve(t, tt.answers...)
				s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{q})
				if (err == nil) != tt.absent || s.Has(q) != tt.absent || tt.absent && s.Now.IsZero() {
					t.Errorf("%+v: answered %v, error %v", q, s.Has(q), err)
				}
			}
		})
	}
}

func TestProtobufList(t *testing.T) {
	t.Parallel()
	list := corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := range 300 {
		list.Items = append(list.Items, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%03d", i), Labels: map[string]string{"a": "b"}},
			Spec:       corev1.NodeSpec{ProviderID: "kubemark://" + strings.Repeat("x", i)},
			Status:     corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}},
		})
	}
	raw, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	frame, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	body := "k8s\x00" + string(frame)
	_, c := serve(t, reply(200, typeProtobuf, body))
	all := []snapshot.Query{snapshot.All("Node")}
	s, err := c.Observe(t.Context(), snapshot.Snapshot{}, all)
	if err != nil || len(s.Nodes) != 300 || s.Nodes[299].Spec.ProviderID != list.Items[299].Spec.ProviderID || s.Nodes[7].Labels["a"] != "b" {
		t.Errorf("%d nodes, error %v", len(s.Nodes), err)
	}
	if images := s.Nodes[0].Status.Images; images != nil {
		t.Errorf("a node is kept with its images: %v", images)
	}
	for cut := 1; cut < len(body); cut += 97 {
		_, c := serve(t, reply(200, typeProtobuf, body[:len(body)-cut]))
		if s, err := c.Observe(t.Context(), snapshot.Snapshot{}, all); err == nil {
			t.Fatalf("%d bytes cut off: %d nodes", cut, len(s.Nodes))
		}
	}
}

func TestWritesAreGuarded(t *testing.T) {
	t.Parallel()
	old := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "7"}}
	changed := old.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	running := old.DeepCopy()
	running.Status.Phase = new(string)
	*running.Status.Phase = "Running"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "v"}}
	f, c := serve(t, reply(200, typeJSON, `{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	for _, a := range []plan.Action{
		plan.Create{Object: old}, plan.Update{Old: old, New: changed}, plan.UpdateStatus{Old: old, New: running}, plan.Delete{Object: old},
		plan.Delete{Object: old, IfUnchanged: true}, plan.Evict{Pod: pod}, plan.Evict{Pod: pod, GraceSeconds: new(int64(1))}, plan.Update{Old: old, New: old},
	} {
		if err := c.Apply(t.Context(), a); err != nil {
			t.Errorf("%s: %v", a.Key(), err)
		}
	}
	want := []string{
		"POST " + machines + "?fieldManager=tester", "PATCH " + machines + "/a?fieldManager=tester", "PATCH " + machines + "/a/status?fieldManager=tester",
		"DELETE " + machines + "/a", "DELETE " + machines + "/a", "POST /api/v1/namespaces/ns/pods/p/eviction?fieldManager=tester",
		"POST /api/v1/namespaces/ns/pods/p/eviction?fieldManager=tester",
	}
	if !slices.Equal(f.asked, want) {
		t.Errorf("asked %q", f.asked)
	}
	for i, want := range map[int]string{
		1: `{"metadata":{"labels":{"a":"b"},"resourceVersion":"7"}}`,
		2: `{"metadata":{"resourceVersion":"7"},"status":{"phase":"Running"}}`,
		3: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},"propagationPolicy":"Background"}`,
		4: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"7"},"propagationPolicy":"Background"}`,
		5: `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"p","namespace":"ns"},"deleteOptions":{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"v"}}}`,
		6: `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"p","namespace":"ns"},"deleteOptions":{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":1,"preconditions":{"uid":"v"}}}`,
	} {
		if f.bodies[i] != want {
			t.Errorf("body of %s: %s", f.asked[i], f.bodies[i])
		}
	}
	var created machine.Machine
	if err := json.Unmarshal([]byte(f.bodies[0]), &created); err != nil || created.Kind != "Machine" || created.APIVersion != "machine.openshift.io/v1beta1" {
		t.Errorf("created %s: %v", f.bodies[0], err)
	}
}

func TestErrorsOfWrites(t *testing.T) {
	t.Parallel()
	old := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "7"}}
	changed := old.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	update, create := plan.Update{Old: old, New: changed}, plan.Create{Object: old}
	class := func(err error) string {
		_, refused := errors.AsType[*cluster.RefusedError](err)
		switch {
		case err == nil:
			return "none"
		case errors.Is(err, cluster.ErrConflict):
			return "conflict"
		case errors.Is(err, cluster.ErrGone):
			return "gone"
		case errors.Is(err, cluster.ErrExists):
			return "exists"
		case refused:
			return "refused"
		}
		return "unclassified"
	}
	for _, tt := range []struct {
		name   string
		action plan.Action
		answer http.HandlerFunc
		want   string
	}{
		{"conflict", update, status(409, metav1.StatusReasonConflict, "modified"), "conflict"},
		{"gone", update, status(404, metav1.StatusReasonNotFound, "not found"), "gone"},
		{"exists", create, status(409, metav1.StatusReasonAlreadyExists, "exists"), "exists"},
		{"no namespace", create, status(404, metav1.StatusReasonNotFound, `namespaces "ns" not found`), "refused"},
		{"terminating namespace", create, status(403, metav1.StatusReasonForbidden, "being terminated"), "refused"},
		{"invalid", update, status(422, metav1.StatusReasonInvalid, "bad"), "refused"},
		{"bad request", update, status(400, metav1.StatusReasonBadRequest, "bad"), "refused"},
		{"not allowed", update, status(405, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method"), "refused"},
		{"too large", update, status(413, metav1.StatusReasonRequestEntityTooLarge, "large"), "refused"},
		{"too large for etcd", update, status(500, "", "etcdserver: request is too large"), "refused"},
		{"too large for etcd's client", create, status(500, "", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2160525 vs. 2097152)"), "refused"},
		{"too large for a webhook", update, status(500, "", `failed calling webhook "w": rpc error: trying to send message larger than max (2 vs. 1)`), "unclassified"},
		{"etcd's trouble", update, status(500, "", "etcdserver: request timed out"), "unclassified"},
		{"proxy's conflict", update, reply(409, "text/html", "conflict"), "unclassified"},
		{"proxy's not found", update, reply(404, "text/plain", "404 page not found"), "unclassified"},
		{"proxy's not found of what is made", create, reply(404, "text/plain", "404 page not found"), "unclassified"},
		{"proxy's forbidden", update, reply(403, "text/html", "forbidden"), "unclassified"},
		{"overloaded", update, reply(429, "text/plain", "later"), "unclassified"},
		{"failed", update, status(500, metav1.StatusReasonInternalError, "etcd"), "unclassified"},
		{"webhook's too many requests", update, status(429, "", `admission webhook "a.b" denied the request: later`), "refused"},
		{"webhook's conflict", update, status(409, metav1.StatusReasonConflict, `admission webhook "a.b" denied the request: busy`), "refused"},
		{"webhook's not found", update, status(404, metav1.StatusReasonNotFound, `admission webhook "a.b" denied the request: no owner`), "refused"},
		{"webhook's error", update, status(500, "", `admission webhook "a.b" denied the request without explanation`), "refused"},
		{"webhook that does not answer", update, status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "a.b": timed out`), "unclassified"},
		{"timed out", update, status(504, metav1.StatusReasonTimeout, "slow"), "unclassified"},
		{"cut off", update, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "unclassified"},
		{"written", update, reply(200, typeJSON, `{"kind":"Machine","apiVersion":"machine.openshift.io/v1beta1"}`), "none"},
		{"proxy's login page", update, reply(200, "text/html", "who are you?"), "unclassified"},
		{"proxy's empty page", create, reply(200, typeJSON, `{}`), "unclassified"},
		{"no page", update, reply(200, typeJSON, ""), "unclassified"},
		{"proxy's redirect", update, elsewhere, "unclassified"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, c := serve(t, tt.answer)
			err := c.Apply(t.Context(), tt.action)
			if got := class(err); got != tt.want {
				t.Errorf("%s, want %s: %v", got, tt.want, err)
			}
		})
	}
}

// An Event that expires while it is counted up is told anew.
func TestEventThatExpires(t *testing.T) {
	t.Parallel()
	f, c := serve(t, status(409, metav1.StatusReasonAlreadyExists, "exists"), status(404, metav1.StatusReasonNotFound, "expired"),
		reply(201, typeJSON, `{"kind":"Event","apiVersion":"v1"}`))
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	if err := c.Tell(t.Context(), plan.Normal(m, "Update", "done")); err != nil || len(f.asked) != 3 {
		t.Errorf("asked %q, error %v", f.asked, err)
	}
}

// elsewhere sends a write to another place, where a GET of the object is answered.
func elsewhere(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		reply(200, typeJSON, `{"kind":"Machine","apiVersion":"machine.openshift.io/v1beta1"}`)(w, r)
		return
	}
	http.Redirect(w, r, r.URL.Path, http.StatusFound)
}

func TestEvictionIsBlocked(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "v"}}
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"reason":"TooManyRequests","message":"no","details":{"causes":[%s]}}`
	budget := fmt.Sprintf(body, `{"reason":"DisruptionBudget","message":"budget web needs 3"}`)
	_, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "10")
		reply(429, typeJSON, budget)(w, r)
	})
	err := c.Apply(t.Context(), plan.Evict{Pod: pod})
	if b, ok := errors.AsType[*cluster.BlockedError](err); !ok || b.RetryAfter != 10*time.Second || b.Message != "budget web needs 3" {
		t.Errorf("error %#v", err)
	}
	_, c = serve(t, reply(429, typeJSON, fmt.Sprintf(body, "")))
	err = c.Apply(t.Context(), plan.Evict{Pod: pod})
	if _, ok := errors.AsType[*cluster.BlockedError](err); ok || err == nil {
		t.Errorf("an overloaded server: %#v", err)
	}
}

// An eviction that a webhook turns into a migration, as KubeVirt does, gets the answer of a budget without its cause; one that
// nobody could be asked about is not made either (B33).
func TestEvictionThatAWebhookHoldsUp(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "v"}}
	_, c := serve(t, status(429, "", `admission webhook "v.kubevirt.io" denied the request: Eviction triggered evacuation of VMI`))
	err := c.Apply(t.Context(), plan.Evict{Pod: pod})
	if r, ok := errors.AsType[*cluster.RefusedError](err); !ok || !strings.Contains(r.Error(), "evacuation of VMI") {
		t.Errorf("denied: %#v", err)
	}
	_, c = serve(t, status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "v.kubevirt.io": connection refused`))
	err = c.Apply(t.Context(), plan.Evict{Pod: pod})
	if b, ok := errors.AsType[*cluster.BlockedError](err); !ok || !strings.Contains(b.Message, "connection refused") {
		t.Errorf("not asked: %#v", err)
	}
}

func TestConflictOfADelete(t *testing.T) {
	t.Parallel()
	old := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "7"}}
	conflict := status(409, metav1.StatusReasonConflict, "precondition")
	found := func(uid string) http.HandlerFunc {
		return reply(200, typeJSON, `{"kind":"Machine","apiVersion":"machine.openshift.io/v1beta1","metadata":{"name":"a","namespace":"ns","uid":"`+uid+`"}}`)
	}
	for _, tt := range []struct {
		name   string
		second http.HandlerFunc
		want   error
	}{
		{"the same object", found("u"), cluster.ErrConflict},
		{"another object", found("w"), cluster.ErrGone},
		{"no object", status(404, metav1.StatusReasonNotFound, "not found"), cluster.ErrGone},
		{"nobody knows", reply(502, "text/html", "bad gateway"), cluster.ErrConflict},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, c := serve(t, conflict, tt.second)
			if err := c.Apply(t.Context(), plan.Delete{Object: old}); !errors.Is(err, tt.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestNoErrorHoldsASecret(t *testing.T) {
	t.Parallel()
	canary := base64.StdEncoding.EncodeToString([]byte("canary"))
	for _, body := range []string{
		`{"kind":"Secret","apiVersion":"v1","data":{"key":"` + canary + `"`,
		`{"kind":"Secret","apiVersion":"v1","data":{"key":"!` + canary + `"}}`,
		`{"kind":"Secret","apiVersion":"v1","data":"` + canary + `"}`,
		`{"kind":"ConfigMap","apiVersion":"v1","data":{"key":"` + canary + `"}}`,
		canary,
	} {
		for _, code := range []int{200, 500} {
			for _, contentType := range []string{typeJSON, "text/plain", typeProtobuf} {
				_, c := serve(t, reply(code, contentType, body))
				_, _, err := c.Secret(t.Context(), "ns", "cloud")
				if err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "canary") {
					t.Errorf("%d %s %s: %v", code, contentType, body, err)
				}
			}
		}
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	for version, ok := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true} {
		server := httptest.NewUnstartedServer(page("", "a"))
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: version} //nolint:gosec // the point
		server.StartTLS()
		t.Cleanup(server.Close)
		c := connect(t, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
		if _, err := observeMachines(t, c); (err == nil) != ok {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}
