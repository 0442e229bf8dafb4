// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// fake is as much of OpenStack as the driver asks for, in this process and in virtual time; test/openstack runs the same
// suite on the real one. It is a wire: what it answers can be lost, cut or replaced.
type fake struct {
	mu      sync.Mutex
	things  map[string]map[string]*thing // by collection, by id
	calls   []string                     // method and path of every request, in order
	writes  int
	quota   int // of instances; 0: none
	page    int // how many a page of instances has
	tokens  map[string]time.Time
	tokenIs time.Duration // how long a token lives
	refuses string        // the password that is no good any more
	macs    bool          // tenants may choose MAC addresses
	volumes bool          // there is a Cinder
	slow    time.Duration // how long a volume takes
	absent  bool          // Cinder does not answer Nova, which forgets its instances all the same
	takes   time.Duration // how long the wire takes, each way
	forgets int           // how many removals of instances Nova accepts, and nobody carries out
	putsOff bool          // Nova puts removals of instances off, and lists none of them
	noRoom  int           // how many instances more there is no host for
	untold  string        // the instance that no list in detail tells of
	host    string        // where the catalog says that the services are

	// late lets a request have its effect long after its caller has given up.
	late func() bool

	// wire is asked before a request has its effect, and after. It answers in place of the cloud.
	wire func(ctx context.Context, r *http.Request, after bool) (*http.Response, error)
}

// thing is any resource: its fields as the API has them.
type thing struct {
	fields map[string]any
	born   time.Time
	dying  time.Time
}

func (t *thing) text(name string) string {
	s, _ := t.fields[name].(string)
	return s
}

func (t *thing) tags() []string {
	var all []string
	list, _ := t.fields["tags"].([]any)
	for _, x := range list {
		all = append(all, fmt.Sprint(x))
	}
	return all
}

const (
	builds  = 2 * time.Second // from the request to ACTIVE
	removes = time.Second
	lateBy  = 25 * time.Second                   // after a request was sent; its caller gives up after 10 s
	own     = "11111111111111111111111111111111" // the project
)

func newFake() *fake {
	f := &fake{things: map[string]map[string]*thing{}, tokens: map[string]time.Time{}, tokenIs: time.Hour, macs: true, volumes: true, page: 1000}
	for _, fl := range []struct {
		name           string
		cpu, ram, disk int
	}{{"4c16g30d", 4, 16384, 30}, {"4c12g30d", 4, 12288, 30}} {
		f.add("flavors", map[string]any{"name": fl.name, "vcpus": fl.cpu, "ram": fl.ram, "disk": fl.disk, "extra_specs": map[string]any{}})
	}
	f.add("images", map[string]any{"name": "rhcos-ocp43", "status": "active"})
	net := f.add("networks", map[string]any{"name": "ocp43-net", "project_id": own})
	f.add("subnets", map[string]any{"name": "ocp43-nodes", "network_id": net, "tags": []any{"openshiftClusterID=ocp43-abcde"}})
	shared := f.add("networks", map[string]any{"name": "storage", "project_id": "somebody"})
	f.add("subnets", map[string]any{"name": "storage-v4", "network_id": shared, "tags": []any{"both"}})
	f.add("subnets", map[string]any{"name": "ocp43-both", "network_id": net, "tags": []any{"both"}})
	f.add("security-groups", map[string]any{"name": "ocp43-worker"})
	f.add("server_groups", map[string]any{"name": "ocp43-worker"})
	f.add("floatingips", map[string]any{"floating_ip_address": "198.51.100.7", "port_id": nil, "revision_number": 1})
	return f
}

func (f *fake) add(kind string, fields map[string]any) string {
	id := string(uuid.NewUUID())
	fields["id"] = id
	if f.things[kind] == nil {
		f.things[kind] = map[string]*thing{}
	}
	f.things[kind][id] = &thing{fields: fields, born: time.Now()}
	return id
}

func (f *fake) count(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	return len(f.things[kind])
}

// RoundTrip implements [http.RoundTripper].
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	body := []byte{}
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	if f.late != nil && f.late() {
		go func() {
			time.Sleep(lateBy)
			f.handle(r, body)
		}()
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if f.wire != nil {
		if answer, err := f.wire(r.Context(), r, false); answer != nil || err != nil {
			return answer, err
		}
	}
	status, answer, header := f.handle(r, body)
	if f.wire != nil {
		if answer, err := f.wire(r.Context(), r, true); answer != nil || err != nil {
			return answer, err
		}
	}
	return reply(status, answer, header), nil
}

func (f *fake) handle(r *http.Request, body []byte) (status int, answer any, header http.Header) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	f.calls = append(f.calls, r.Method+" "+r.URL.Path)
	status, answer, header = f.serve(r, body)
	if r.Method != http.MethodGet && status < 300 && !strings.HasSuffix(r.URL.Path, "/auth/tokens") {
		f.writes++
	}
	return status, answer, header
}

// reply is an answer in JSON.
func reply(status int, answer any, header http.Header) *http.Response {
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	if answer == nil {
		text = nil
	}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(text))}
}

func refuse(status int, kind, format string, args ...any) (int, any, http.Header) {
	return status, map[string]any{kind: map[string]any{"message": fmt.Sprintf(format, args...), "code": status}}, nil
}

// settle lets happen what was asked for a while ago.
func (f *fake) settle() {
	now := time.Now()
	for _, id := range slices.Sorted(maps.Keys(f.things["servers"])) {
		s := f.things["servers"][id]
		if s.text("status") == "BUILD" && now.Sub(s.born) >= builds/2 && s.fields["bound"] == nil {
			f.place(id, s)
		}
		if s.text("status") == "BUILD" && now.Sub(s.born) >= builds {
			s.fields["status"], s.fields["OS-SRV-USG:launched_at"], s.fields["OS-EXT-AZ:availability_zone"] = "ACTIVE", "2026-01-01T00:00:00.000000", "nova"
		}
		if s.fields["bound"] == false && now.Sub(s.born) >= builds {
			s.fields["fault"] = map[string]any{"message": "No valid host was found. There are not enough hosts available."}
		}
		if s.text("status") == "HARD_REBOOT" && now.Sub(s.born) >= builds {
			s.fields["status"] = "ACTIVE"
		}
		if !s.dying.IsZero() && now.Sub(s.dying) >= removes {
			f.unbind(id)
			delete(f.things["servers"], id)
		}
	}
	for id, v := range f.things["volumes"] {
		if v.text("status") == "creating" && now.Sub(v.born) >= f.slow {
			v.fields["status"] = "available"
		}
		if !v.dying.IsZero() && now.Sub(v.dying) >= removes {
			delete(f.things["volumes"], id)
		}
	}
}

// place gives an instance a host, if one has room.
func (f *fake) place(id string, s *thing) {
	if s.text("OS-EXT-STS:task_state") == "scheduling" {
		s.fields["OS-EXT-STS:task_state"] = nil
	}
	if f.noRoom > 0 {
		f.noRoom--
		s.fields["status"], s.fields["bound"] = "ERROR", false // why is told a moment later, as by Nova
		return
	}
	f.bind(id, s)
}

// bind gives an instance its ports: of two that want the same one loses (RELIABILITY 2b).
func (f *fake) bind(id string, s *thing) {
	s.fields["bound"] = true
	addresses := []any{}
	for _, p := range s.fields["ports"].([]string) {
		port, ok := f.things["ports"][p]
		if !ok || port.text("device_id") != "" {
			s.fields["status"], s.fields["fault"] = "ERROR", map[string]any{"message": "Port " + p + " is still in use."}
			return
		}
		port.fields["device_id"] = id
		addresses = append(addresses, map[string]any{"addr": port.text("address"), "OS-EXT-IPS:type": "fixed"})
	}
	s.fields["addresses"] = map[string]any{"ocp43-net": addresses}
}

func (f *fake) unbind(id string) {
	for _, p := range f.things["ports"] {
		if p.text("device_id") == id {
			p.fields["device_id"] = ""
		}
	}
	for v, t := range f.things["volumes"] {
		if t.text("server") == id && !f.absent {
			f.detach(v)
			delete(f.things["volumes"], v)
		}
	}
}

// serve answers one request.
func (f *fake) serve(r *http.Request, body []byte) (int, any, http.Header) {
	service, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if service == "identity" {
		return f.login(body)
	}
	if ends, ok := f.tokens[r.Header.Get("X-Auth-Token")]; !ok || time.Now().After(ends) {
		return refuse(http.StatusUnauthorized, "error", "The request you have made requires authentication.")
	}
	path = strings.TrimPrefix(path, map[string]string{"compute": "v2.1/", "network": "v2.0/", "image": "v2/", "volume": "v3/" + own + "/"}[service])
	var asked map[string]any
	if len(body) > 0 && json.Unmarshal(body, &asked) != nil {
		return refuse(http.StatusBadRequest, "badRequest", "Malformed request body")
	}
	parts := strings.Split(path, "/")
	switch {
	case path == "os-availability-zone":
		return http.StatusOK, map[string]any{"availabilityZoneInfo": []any{map[string]any{"zoneName": "nova"}}}, nil
	case parts[0] == "os-server-groups" && r.Method == http.MethodGet:
		return f.groups(r.URL.Query())
	case parts[0] == "os-server-groups":
		parts[0] = "server_groups"
		if r.Method == http.MethodDelete {
			return f.drop(parts[0], parts[1])
		}
	case r.Method == http.MethodGet && (len(parts) == 1 || parts[1] == "detail"):
		if one := f.things["servers"][f.untold]; one != nil && path == "servers/detail" {
			delete(f.things["servers"], f.untold)
			defer func() { f.things["servers"][f.untold] = one }()
		}
		return f.list(parts[0], strings.ReplaceAll(parts[0], "-", "_"), r.URL.Query())
	case r.Method == http.MethodGet:
		return f.show(parts[0], parts[1])
	case r.Method == http.MethodDelete:
		return f.drop(parts[0], parts[1])
	case r.Method == http.MethodPut:
		return f.change(parts, asked, r.Header.Get("If-Match"))
	}
	return f.make(parts, asked)
}

func (f *fake) login(body []byte) (int, any, http.Header) {
	if f.refuses != "" && strings.Contains(string(body), f.refuses) {
		return refuse(http.StatusUnauthorized, "error", "The request you have made requires authentication.")
	}
	token := string(uuid.NewUUID())
	f.tokens[token] = time.Now().Add(f.tokenIs)
	var catalog []any
	for kind, at := range map[string]string{"compute": "compute/v2.1", "network": "network", "image": "image", "volumev3": "volume/v3/" + own} {
		if kind != "volumev3" || f.volumes {
			catalog = append(catalog, map[string]any{"type": kind, "endpoints": []any{
				map[string]any{"interface": "internal", "region": "regionOne", "url": "http://inner.test/" + at},
				map[string]any{"interface": "public", "region": "regionTwo", "url": "http://far.test/" + at},
				map[string]any{"interface": "public", "region": "regionOne", "url": "http://" + cmp.Or(f.host, "cloud.test") + "/" + at},
			}})
		}
	}
	return http.StatusCreated, map[string]any{"token": map[string]any{
		"expires_at": time.Now().Add(f.tokenIs).UTC().Format("2006-01-02T15:04:05.000000Z"), "project": map[string]any{"id": own}, "catalog": catalog,
	}}, http.Header{"X-Subject-Token": {token}}
}

// list answers with what matches a query as Nova's, Neutron's and Cinder's do, in pages.
func (f *fake) list(kind, key string, q url.Values) (int, any, http.Header) {
	ids := slices.SortedFunc(maps.Keys(f.things[kind]), strings.Compare)
	all := []any{}
	links := []any{}
	for _, id := range ids {
		t := f.things[kind][id]
		if !matches(t, q) || id <= q.Get("marker") || t.fields["os_hidden"] == true || t.text("visibility") == "community" || t.text("status") == "SOFT_DELETED" {
			continue
		}
		if kind == "servers" && len(all) == f.page { // f.page is also the most that a limit may ask for
			links = append(links, map[string]any{"rel": "next", "href": "http://wrong.test/"})
			break
		}
		all = append(all, t.fields)
	}
	return http.StatusOK, map[string]any{key: all, key + "_links": links}, nil
}

// groups answers with server groups as Nova does: f.page at most, and no link to more.
func (f *fake) groups(q url.Values) (int, any, http.Header) {
	ids := slices.SortedFunc(maps.Keys(f.things["server_groups"]), strings.Compare)
	from, _ := strconv.Atoi(q.Get("offset"))
	most, _ := strconv.Atoi(q.Get("limit"))
	all := []any{}
	for _, id := range ids[min(from, len(ids)):min(from+min(most, f.page), len(ids))] {
		fields := maps.Clone(f.things["server_groups"][id].fields)
		fields["members"] = f.members(id)
		all = append(all, fields)
	}
	return http.StatusOK, map[string]any{"server_groups": all}, nil
}

// members lists the instances in a server group.
func (f *fake) members(group string) []string {
	all := []string{}
	for id, s := range f.things["servers"] {
		if hints, _ := s.fields["hints"].(map[string]any); hints["group"] == group {
			all = append(all, id)
		}
	}
	return all
}

func matches(t *thing, q url.Values) bool {
	for name, values := range q {
		value := values[0]
		switch name {
		case "fields", "limit", "marker":
		case "tags":
			for _, want := range strings.Split(value, ",") {
				if !slices.Contains(t.tags(), want) {
					return false
				}
			}
		case "not-tags":
			if slices.Contains(t.tags(), value) {
				return false
			}
		case "metadata":
			var want map[string]any
			have, _ := t.fields["metadata"].(map[string]any)
			if json.Unmarshal([]byte(value), &want) != nil {
				return false
			}
			for k, v := range want {
				if have[k] != v {
					return false
				}
			}
		case "id":
			if t.text(name) != strings.TrimPrefix(value, "in:") {
				return false
			}
		default:
			if t.text(name) != value {
				return false
			}
		}
	}
	return true
}
