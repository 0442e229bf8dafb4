// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// api serves objects as an API server encodes them, without keeping any: lists in pages, one object by name, watches
// with bookmarks. It only reads. What it costs is not measured: it is another process than what scans.
type api struct {
	mu       sync.Mutex
	revision uint64
	kinds    map[string]*served // by path of the resource, namespaces left out
	log      []happened         // changes, oldest first
}

type served struct {
	plan.Resource
	names  []string // sorted, namespace/name
	byName map[string][]byte
	whole  []plan.Object // in the order of names
}

type happened struct {
	path     string
	revision uint64
	object   []byte
}

// proto is what objects of Kubernetes' own groups can do.
type proto interface{ Marshal() ([]byte, error) }

func newAPI(s snapshot.Snapshot) (*api, error) {
	a := &api{revision: 1000, kinds: map[string]*served{}}
	for _, r := range plan.Resources() {
		a.kinds[pathOf(r)] = &served{Resource: r, byName: map[string][]byte{}}
	}
	for o := range s.Objects() {
		r, _ := plan.ResourceOf(plan.KindOf(o))
		o.SetResourceVersion("1000")
		text, err := encode(r, o)
		if err != nil {
			return nil, err
		}
		k := a.kinds[pathOf(r)]
		name := o.GetNamespace() + "/" + o.GetName()
		k.names, k.byName[name], k.whole = append(k.names, name), text, append(k.whole, o)
	}
	for _, k := range a.kinds {
		slices.Sort(k.names) // as the storage does
	}
	return a, nil
}

func pathOf(r plan.Resource) string {
	if r.Group.Group == "" {
		return "/api/" + r.Group.Version + "/" + r.Plural
	}
	return "/apis/" + r.Group.String() + "/" + r.Plural
}

func encode(r plan.Resource, o plan.Object) ([]byte, error) {
	if p, ok := o.(proto); ok && !custom(r) {
		return p.Marshal()
	}
	o, _ = o.DeepCopyObject().(plan.Object)
	o.GetObjectKind().SetGroupVersionKind(r.GVK())
	return json.Marshal(o)
}

func custom(r plan.Resource) bool { return strings.HasSuffix(r.Group.Group, "openshift.io") }

// ServeHTTP answers GET requests.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, name := r.URL.Path, ""
	if before, after, ok := strings.Cut(path, "/namespaces/"); ok {
		parts := strings.Split(after, "/")
		path = before + "/" + parts[1]
		if len(parts) == 3 {
			name = parts[0] + "/" + parts[2]
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.kinds[path]
	if k == nil { // a cluster-scoped object by name, or a kind that is not installed
		at := strings.LastIndex(path, "/")
		if k, name = a.kinds[path[:at]], "/"+path[at+1:]; k == nil {
			a.unknown(w, path)
			return
		}
	}
	switch {
	case name != "":
		a.one(w, k, name)
	case r.URL.Query().Get("watch") != "":
		a.watch(w, r, k, path)
	default:
		a.list(w, r, k)
	}
}

func (a *api) unknown(w http.ResponseWriter, path string) {
	if path == "/apis" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
		return
	}
	http.Error(w, "404 page not found", http.StatusNotFound)
}

func (a *api) one(w http.ResponseWriter, k *served, name string) {
	text, ok := k.byName[name]
	if !ok {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"not found"}`))
		return
	}
	if custom(k.Resource) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	_, _ = w.Write(envelope(k.Resource, "", text))
}

func (a *api) list(w http.ResponseWriter, r *http.Request, k *served) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	to := min(len(k.names), from+limit)
	meta := metav1.ListMeta{ResourceVersion: fmt.Sprint(a.revision)}
	if to < len(k.names) {
		meta.Continue = strconv.Itoa(to)
	}
	if custom(k.Resource) {
		items := make([]json.RawMessage, 0, to-from)
		for _, n := range k.names[from:to] {
			items = append(items, k.byName[n])
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": k.GVK().Kind + "List", "apiVersion": k.Group.String(), "metadata": meta, "items": items})
		return
	}
	head, _ := meta.Marshal()
	body := field(nil, 1, head)
	for _, n := range k.names[from:to] {
		body = field(body, 2, k.byName[n])
	}
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	_, _ = w.Write(envelope(k.Resource, "List", body))
}

// watch tells what happened since a revision, then, as a real server does where nothing follows, a bookmark a second later.
func (a *api) watch(w http.ResponseWriter, r *http.Request, k *served, path string) {
	since, _ := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
	w.WriteHeader(http.StatusOK)
	for _, h := range a.log {
		if h.revision > since && h.path == path {
			_, _ = w.Write(frame("MODIFIED", envelope(k.Resource, "", h.object)))
		}
	}
	_ = http.NewResponseController(w).Flush() // so that what happened is told at once
	o := k.New()
	o.SetResourceVersion(fmt.Sprint(a.revision))
	text, _ := encode(k.Resource, o)
	a.mu.Unlock()
	time.Sleep(time.Second)
	_, _ = w.Write(frame("BOOKMARK", envelope(k.Resource, "", text)))
	a.mu.Lock()
}

// change makes every n-th object of a kind another revision.
func (a *api) change(kind plan.Kind, first, n, count int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, _ := plan.ResourceOf(kind)
	k := a.kinds[pathOf(r)]
	for i := range count {
		o, _ := k.whole[(first+i*n)%len(k.whole)].DeepCopyObject().(plan.Object)
		a.revision++
		o.SetResourceVersion(fmt.Sprint(a.revision))
		text, err := encode(r, o)
		if err != nil {
			continue
		}
		k.byName[o.GetNamespace()+"/"+o.GetName()] = text
		a.log = append(a.log, happened{pathOf(r), a.revision, text})
	}
}

func envelope(r plan.Resource, suffix string, raw []byte) []byte {
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: r.Group.String(), Kind: r.GVK().Kind + suffix}, Raw: raw}
	body, _ := u.Marshal() // bytes marshal
	return append([]byte("k8s\x00"), body...)
}

func field(to []byte, number uint64, message []byte) []byte {
	to = binary.AppendUvarint(to, number<<3|2)
	to = binary.AppendUvarint(to, uint64(len(message)))
	return append(to, message...)
}

func frame(what string, object []byte) []byte {
	e := metav1.WatchEvent{Type: what, Object: runtime.RawExtension{Raw: object}}
	message, _ := e.Marshal() // bytes marshal
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}
