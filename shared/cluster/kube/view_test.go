// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// watching is a server that answers in turn, and a client that keeps lists of Pods of any length.
func watching(t *testing.T, answers ...http.HandlerFunc) (*fakeServer, *Cluster) {
	t.Helper()
	f := &fakeServer{answers: answers}
	f.Server = httptest.NewServer(http.HandlerFunc(f.answer))
	t.Cleanup(f.Close)
	return f, keeping(t, &rest.Config{Host: f.URL}, Options{FieldManager: "tester", Watched: []plan.Kind{"Pod"}})
}

// podPage is a page of a list of Pods at a revision.
func podPage(version, next string, names ...string) http.HandlerFunc {
	var items []string
	for _, n := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns","labels":{"seen":"at-%s"}}}`, n, version))
	}
	return reply(200, typeJSON, fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`,
		version, next, strings.Join(items, ",")))
}

// happened is what a watch tells of a Pod.
func happened(what, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns","resourceVersion":%q,"labels":{"seen":"at-%s"}}}}`,
		what, name, version, version) + "\n"
}

const expiredWatch = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired","message":"too old"}}`

func told(events ...string) http.HandlerFunc { return reply(200, typeJSON, strings.Join(events, "")) }

func observePods(t *testing.T, c *Cluster) ([]string, error) {
	t.Helper()
	s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.All("Pod")})
	var seen []string
	for _, p := range s.Pods {
		seen = append(seen, p.Name+" "+p.Labels["seen"])
	}
	return seen, err
}

func mustSee(t *testing.T, c *Cluster, want ...string) {
	t.Helper()
	if got, err := observePods(t, c); err != nil || !slices.Equal(got, want) {
		t.Errorf("pods %q, error %v, want %q", got, err, want)
	}
}

func TestKeptListCostsWhatChanged(t *testing.T) {
	t.Parallel()
	f, c := watching(t,
		podPage("7", "more", "a", "c"), podPage("7", "", "d"),
		podPage("9", "x", "a"), told(happened("DELETED", "c", "8"), happened("ADDED", "b", "9")),
		podPage("9", "x", "a"),
		podPage("12", "x", "a"), told(happened("MODIFIED", "d", "10"), happened("ADDED", "e", "11"), happened("DELETED", "e", "12"), happened("ADDED", "too-late", "13")),
		podPage("20", "x", "a"), told(happened("BOOKMARK", "", "21")),
	)
	mustSee(t, c, "a at-7", "c at-7", "d at-7")
	mustSee(t, c, "a at-7", "b at-9", "d at-7")
	mustSee(t, c, "a at-7", "b at-9", "d at-7")
	mustSee(t, c, "a at-7", "b at-9", "d at-10")
	mustSee(t, c, "a at-7", "b at-9", "d at-10")
	const pods, since = "GET /api/v1/pods", "?allowWatchBookmarks=true&resourceVersion=%d&timeoutSeconds=3&watch=1"
	want := []string{
		pods + "?limit=3", pods + "?continue=more&limit=3",
		pods + "?limit=1", fmt.Sprintf(pods+since, 7),
		pods + "?limit=1",
		pods + "?limit=1", fmt.Sprintf(pods+since, 9),
		pods + "?limit=1", fmt.Sprintf(pods+since, 12),
	}
	if !slices.Equal(f.asked, want) {
		t.Errorf("asked %q", f.asked)
	}
}

// A revision without a date, as a proxy may pass it on, brings no list up to date: nobody knows of which time its answer is (G7).
func TestKeptListIsOfATimeThatIsKnown(t *testing.T) {
	t.Parallel()
	dateless := func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		podPage("7", "x", "a")(w, r)
	}
	_, c := watching(t, podPage("7", "", "a", "c"), dateless, podPage("9", "", "b"))
	mustSee(t, c, "a at-7", "c at-7")
	mustSee(t, c, "b at-9")
	_, c = watching(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		podPage("7", "", "a")(w, r)
	})
	if got, err := observePods(t, c); err == nil {
		t.Errorf("a list without a date: %q", got)
	}
}

// An earlier snapshot is not touched by what happens later.
func TestKeptListsAreApart(t *testing.T) {
	t.Parallel()
	_, c := watching(t, podPage("7", "", "a", "b"), podPage("8", "", "a"), told(happened("DELETED", "a", "8")))
	first, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.All("Pod")})
	if err != nil {
		t.Fatal(err)
	}
	mustSee(t, c, "b at-7")
	if len(first.Pods) != 2 || first.Pods[0].Name != "a" {
		t.Errorf("the first observation became %v", first.Pods)
	}
}

// Whatever is wrong with a watch, the list says what is true.
func TestWatchThatFailsEndsInAList(t *testing.T) {
	t.Parallel()
	for what, watch := range map[string]http.HandlerFunc{
		"expired":             status(410, metav1.StatusReasonExpired, "too old"),
		"expired in between":  told(happened("ADDED", "x", "8"), expiredWatch),
		"ended by the server": told(happened("ADDED", "x", "8")),
		"not the API's":       reply(200, "text/html", "<html>"),
		"without revision":    told(happened("ADDED", "x", "")),
		"refused":             status(500, metav1.StatusReasonInternalError, "no"),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f, c := watching(t, podPage("7", "", "a"), podPage("9", "", "a"), watch, podPage("10", "", "b"))
			mustSee(t, c, "a at-7")
			mustSee(t, c, "b at-10")
			if len(f.asked) != 4 {
				t.Errorf("asked %q", f.asked)
			}
		})
	}
}

// Storage that was restored is at an earlier revision: what was kept is of what is no more, also once that revision comes again.
func TestNothingIsKeptOfStorageThatWasSetBack(t *testing.T) {
	t.Parallel()
	f, c := watching(t,
		podPage("1000", "", "a", "b", "c"),
		podPage("400", "x", "a"), podPage("400", "", "a", "d"),
		podPage("1003", "x", "a"), told(happened("ADDED", "e", "1003")),
	)
	mustSee(t, c, "a at-1000", "b at-1000", "c at-1000")
	mustSee(t, c, "a at-400", "d at-400")
	mustSee(t, c, "a at-400", "d at-400", "e at-1003")
	if want := "resourceVersion=400&"; len(f.asked) != 5 || !strings.Contains(f.asked[4], want) {
		t.Errorf("asked %q, want a watch with %s", f.asked, want)
	}
}

// Nor is a list kept that nobody asked for while storage could be restored, since the revision may have come again by then.
func TestNothingIsKeptThatNobodyAskedForInAWhile(t *testing.T) {
	t.Parallel()
	f, c := watching(t, podPage("7", "", "a"), podPage("9", "", "b"))
	mustSee(t, c, "a at-7")
	for _, v := range c.views {
		v.heard = v.heard.Add(-keptFor)
	}
	mustSee(t, c, "b at-9")
	if len(f.asked) != 2 {
		t.Errorf("asked %q", f.asked)
	}
}

func TestDeniedWatchIsNotTriedEachTime(t *testing.T) {
	t.Parallel()
	f, c := watching(t, podPage("7", "", "a"), podPage("9", "", "a"), status(403, metav1.StatusReasonForbidden, "may not watch"),
		podPage("10", "", "b"), podPage("11", "", "c"))
	mustSee(t, c, "a at-7")
	mustSee(t, c, "b at-10")
	mustSee(t, c, "c at-11")
	if len(f.asked) != 5 {
		t.Errorf("asked %q", f.asked)
	}
}

// late lets requests for further pages time out, so many times.
type late struct {
	http.RoundTripper
	times int
}

func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.times > 0 && strings.Contains(r.URL.RawQuery, "continue=") {
		l.times--
		return nil, context.DeadlineExceeded
	}
	return l.RoundTripper.RoundTrip(r)
}

// A list at a revision that is no number cannot be followed: it is read anew, and not once more behind itself.
func TestListWithoutARevisionIsNotKept(t *testing.T) {
	t.Parallel()
	_, c := watching(t, podPage("x", "", "a", "b"), podPage("y", "", "a", "c"))
	mustSee(t, c, "a at-x", "b at-x")
	mustSee(t, c, "a at-y", "c at-y")
	_, c = watching(t, podPage("x", "one", "a"), podPage("y", "", "a", "c")) // nor are the pages that came in time
	c.client.Transport = &late{http.DefaultTransport, 1}
	if _, err := observePods(t, c); err == nil {
		t.Fatal("a list without its second page is no list")
	}
	mustSee(t, c, "a at-y", "c at-y")
}

// A list that a busy server does not finish in time is gone on with by the next.
func TestLoadingGoesOn(t *testing.T) {
	t.Parallel()
	f, c := watching(t, podPage("7", "one", "a"), podPage("7", "", "b"), podPage("8", "", "a"), told(happened("DELETED", "a", "8")))
	c.client.Transport = &late{http.DefaultTransport, 1}
	if _, err := observePods(t, c); err == nil {
		t.Fatal("a list without its second page is no list")
	}
	mustSee(t, c, "b at-7")
	if want := "GET /api/v1/pods?continue=one&limit=3"; f.asked[1] != want {
		t.Errorf("asked %q, want %s", f.asked, want)
	}
}

// protobufPage is a page of a list of Pods at a revision, as the API server sends it.
func protobufPage(t *testing.T, next string, names ...string) http.HandlerFunc {
	t.Helper()
	list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: next}}
	for _, n := range names {
		list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: n, Namespace: "ns", Labels: map[string]string{"seen": "at-7"}}})
	}
	raw, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return reply(200, typeProtobuf, "k8s\x00"+string(body))
}

// The server makes the next page of a long list while the client reads one, which takes both as long.
func TestNextPageIsAskedForWhileOneIsRead(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	second := func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		protobufPage(t, "", "b")(w, r)
	}
	f, c := watching(t, protobufPage(t, "more", "a"), second)
	r, _ := plan.ResourceOf("Pod")
	r.New = func() plan.Object { // begins to read an item
		select {
		case <-asked:
		case <-time.After(10 * time.Second):
			t.Error("the page was read before the next was asked for")
		}
		return &corev1.Pod{}
	}
	v := c.views[snapshot.All("Pod")]
	if _, err := v.load(t.Context(), c, r); err != nil || len(v.all) != 2 || len(f.asked) != 2 {
		t.Errorf("%d Pods, asked %q, error %v", len(v.all), f.asked, err)
	}
}

// A page that cannot be read ends the list, also where the next is on its way.
func TestPageThatCannotBeReadEndsTheList(t *testing.T) {
	t.Parallel()
	_, c := watching(t, protobufPage(t, "more", "a"), protobufPage(t, "", "b"))
	r, _ := plan.ResourceOf("Pod")
	r.New = func() plan.Object { return &unstructured.Unstructured{} }
	if _, err := c.views[snapshot.All("Pod")].load(t.Context(), c, r); err == nil {
		t.Error("a list without one of its items is no list")
	}
}

func TestShortListsAreNotKept(t *testing.T) {
	t.Parallel()
	f, c := watching(t, podPage("7", "", "a"), podPage("8", "", "b"))
	for _, v := range c.views {
		v.fewest = 2
	}
	mustSee(t, c, "a at-7")
	mustSee(t, c, "b at-8")
	if len(f.asked) != 2 {
		t.Errorf("asked %q", f.asked)
	}
}

// As the API server sends it: frames with their length, objects in the usual envelope.
func TestWatchInProtobuf(t *testing.T) {
	t.Parallel()
	stream := func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Accept"), typeProtobuf) {
			t.Errorf("asks for %s", r.Header.Get("Accept"))
		}
		w.Header().Set("Content-Type", typeProtobuf+";stream=watch")
		for i, what := range []string{"ADDED", "BOOKMARK"} {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", ResourceVersion: fmt.Sprint(8 + i), Labels: map[string]string{"seen": "now"}}}
			_, _ = w.Write(framed(t, what, p))
		}
	}
	_, c := watching(t, podPage("7", "", "a"), podPage("9", "", "a"), stream)
	mustSee(t, c, "a at-7")
	mustSee(t, c, "a at-7", "p now")
}

func framed(t *testing.T, what string, p *corev1.Pod) []byte {
	t.Helper()
	raw, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	event := metav1.WatchEvent{Type: what, Object: runtime.RawExtension{Raw: append([]byte("k8s\x00"), body...)}}
	message, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

func TestMergedListStaysSorted(t *testing.T) {
	t.Parallel()
	pod := func(namespace, n string) plan.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n}}
	}
	all := []plan.Object{pod("a", "x"), pod("a-b", "x"), pod("b", "a"), pod("b", "c")}
	got := merged(all, map[name]change{
		{"a", "x"}: {was: pod("a", "x")}, {"b", "b"}: {now: pod("b", "b")}, {"b", "c"}: {now: pod("b", "c")}, {"0", "x"}: {now: pod("0", "x")},
		{"c", "gone"}: {was: pod("c", "gone")}, {"c", "z"}: {now: pod("c", "z")},
	})
	var names []string
	for _, o := range got {
		names = append(names, o.GetNamespace()+"/"+o.GetName())
	}
	if want := "0/x a-b/x b/a b/b b/c c/z"; strings.Join(names, " ") != want {
		t.Errorf("%q, want %q", names, want)
	}
	if len(all) != 4 || got[4] == all[3] {
		t.Error("the old list changed, or the new one did not")
	}
}

// BenchmarkMerge is a scan's share of keeping 150,000 Pods of which 1,000 changed.
func BenchmarkMerge(b *testing.B) {
	var all []plan.Object
	for i := range 150_000 {
		all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p-%06d", i), CreationTimestamp: metav1.NewTime(time.Unix(0, 0))}})
	}
	changed := map[name]change{}
	for i := 0; i < len(all); i += 150 {
		changed[name{"default", all[i].GetName()}] = change{now: all[i]}
	}
	for b.Loop() {
		merged(all, changed)
	}
}
