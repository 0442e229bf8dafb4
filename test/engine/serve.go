// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
)

const (
	root   = "/ovirt-engine/api"
	sso    = "/ovirt-engine/sso/oauth/token"
	logout = "/ovirt-engine/services/sso-logout"
)

var (
	anyID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	acts  = regexp.MustCompile(`/vms/[^/]+/(start|stop|reset)$`)
)

// request is a call with a token.
type request struct {
	*http.Request
	parts  []string // of the path below the API
	body   content
	follow []string
}

// part returns the n-th part of the path, or "".
func (r request) part(n int) string {
	if n < len(r.parts) {
		return r.parts[n]
	}
	return ""
}

// ServeHTTP implements [http.Handler].
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.catchUp()
	switch r.URL.Path {
	case sso:
		e.login(w, r)
		return
	case logout:
		_ = r.ParseForm()
		delete(e.tokens, r.PostForm.Get("token"))
		e.write(w, r, http.StatusOK, "", content{})
		return
	}
	path, below := strings.CutPrefix(r.URL.Path, root)
	if !below {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		return
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if end, known := e.tokens[token]; !known || !end.IsZero() && e.now().After(end) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	e.calls = append(e.calls, r.Method+" "+anyID.ReplaceAllString(path, "*"))
	body, err := e.read(r)
	if err != nil {
		e.refuse(w, r, &fault{http.StatusBadRequest, "Malformed syntax", err.Error()})
		return
	}
	call := request{Request: r, body: body, parts: strings.FieldsFunc(path, func(c rune) bool { return c == '/' })}
	for name := range strings.SplitSeq(r.URL.Query().Get("follow"), ",") {
		call.follow = append(call.follow, name)
	}
	name, answer, f := e.route(call)
	if f != nil {
		e.refuse(w, r, f)
		return
	}
	status := http.StatusOK
	if r.Method == http.MethodPost && name != "action" {
		status = http.StatusCreated
	}
	e.write(w, r, status, name, bare(answer).(content)) // as it came
}

// login gives a token, or refuses as the engine's SSO does.
func (e *Engine) login(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		e.write(w, r, http.StatusBadRequest, "", content{"error_code": "invalid_request", "error": err.Error()})
		return
	}
	e.calls = append(e.calls, "POST token")
	form := r.PostForm
	switch {
	case form.Get("grant_type") != "password" || form.Get("scope") != "ovirt-app-api":
		e.write(w, r, http.StatusBadRequest, "", content{"error_code": "unsupported_grant_type", "error": "Unsupported grant type."})
	case e.Password != "" && (form.Get("username") != User || form.Get("password") != e.Password):
		e.write(w, r, http.StatusBadRequest, "", content{
			"error_code": "access_denied", "error": "Cannot authenticate user " + form.Get("username") + ": The username or password is incorrect..",
		})
	default:
		e.next++
		token := fmt.Sprintf("token-%d", e.next)
		e.tokens[token] = time.Time{}
		if e.Expires > 0 {
			e.tokens[token] = e.now().Add(e.Expires)
		}
		e.write(w, r, http.StatusOK, "", content{"access_token": token, "scope": "ovirt-app-api", "token_type": "bearer", "exp": "9223372036854775807"})
	}
}

// read returns what a request says.
func (e *Engine) read(r *http.Request) (content, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil || len(b) == 0 {
		return content{}, err
	}
	if strings.Contains(r.Header.Get("Content-Type"), "xml") {
		return readXML(b)
	}
	var body content
	err = json.Unmarshal(b, &body)
	return body, err
}

// refuse answers with a fault, but nothing is said of one thing that is missing. Of what is done to a virtual machine the fault stands within that.
func (e *Engine) refuse(w http.ResponseWriter, r *http.Request, f *fault) {
	said := content{"reason": f.reason, "detail": f.detail}
	switch {
	case f.status == http.StatusNotFound && r.Method != http.MethodPost:
		w.WriteHeader(f.status)
	case r.Method == http.MethodPost && acts.MatchString(r.URL.Path):
		e.write(w, r, f.status, "action", content{"status": "failed", "fault": said})
	default:
		e.write(w, r, f.status, "fault", said)
	}
}

// write answers as it is asked for: in XML, or JSON. What the SSO says has no name, and is always JSON.
func (e *Engine) write(w http.ResponseWriter, r *http.Request, status int, name string, answer content) {
	if name != "" && strings.Contains(r.Header.Get("Accept"), "xml") {
		w.Header().Set("Content-Type", "application/xml;charset=UTF-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, xmlOf(name, answer))
		return
	}
	var all any = answer
	if e.Texts && name != "" {
		all = texts(answer)
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic(err) // of maps, texts and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// route does what a call asks for, and returns the name and the content of the answer.
func (e *Engine) route(r request) (string, content, *fault) {
	switch r.part(0) {
	case "":
		return "api", content{"product_info": content{"name": "oVirt Engine", "instance_id": "5a0e0000-0000-4000-8000-000000000001", "version": content{"major": "4", "minor": "5"}}}, nil
	case "vms":
		return e.vms(r)
	case "disks":
		return e.looseDisks(r)
	case "templates":
		return e.template(r)
	case "tags":
		return e.allTags(r)
	case "clusters":
		return e.cluster(r)
	}
	return e.fixed(r)
}

// fixed answers about what never changes.
func (e *Engine) fixed(r request) (string, content, *fault) {
	things := map[string]struct {
		one string
		all []content
	}{
		"vnicprofiles":   {"vnic_profile", []content{{"id": Profile, "name": "machines"}, {"id": OtherProfile, "name": "ovirtmgmt"}}},
		"storagedomains": {"storage_domain", []content{{"id": StorageDomain, "name": "data"}}},
		"instancetypes": {"instance_type", []content{
			{"id": InstanceType, "name": "Large", "memory": int64(16 * gib), "cpu": topology(1, 4, 1)},
			{"id": "5a0e0006-0000-4000-8000-000000000002", "name": "Tiny", "memory": int64(gib), "cpu": topology(1, 1, 1)},
		}},
		"hosts": {"host", []content{
			{"id": "5a0e0011-0000-4000-8000-000000000001", "name": "a", "cluster": content{"id": Cluster}},
			{"id": "5a0e0011-0000-4000-8000-000000000002", "name": "b", "cluster": content{"id": Elsewhere}},
		}},
	}
	of, known := things[r.part(0)]
	if !known || r.Method != http.MethodGet {
		return "", nil, absent(r.URL.Path)
	}
	if id := r.part(1); id != "" {
		for _, it := range of.all {
			if it["id"] == id {
				return of.one, it, nil
			}
		}
		return "", nil, absent(of.one + ": id=" + id)
	}
	return e.list(r, of.one, of.all)
}

func topology(sockets, cores, threads int) content {
	return content{"topology": content{"sockets": int64(sockets), "cores": int64(cores), "threads": int64(threads)}}
}
