// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A list is whole, however many pages it has.
func TestListsInPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		for n := range 40 {
			for _, size := range []int{3, 4, 7, 500} {
				l.session.page = size
				all, err := l.List(t.Context())
				must(t, err)
				seen := map[string]bool{}
				for _, i := range all {
					seen[i.ID] = true
				}
				if len(all) != n || len(seen) != n {
					t.Errorf("pages of %d: listed %d, %d of them different, want %d", size, len(all), len(seen), n)
				}
			}
			comment, err := mark{Cluster: l.account.ClusterID, UID: fmt.Sprint("u", n), Token: "t"}.comment()
			must(t, err)
			w.Make(fmt.Sprintf("worker-%d", n), comment)
		}
	})
}

// Thousands of instances are listed with a handful of requests.
func TestListOfThousands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		const many = 3000
		for n := range many {
			comment, err := mark{Cluster: l.account.ClusterID, UID: fmt.Sprint("u", n), Token: "t"}.comment()
			must(t, err)
			w.Make(fmt.Sprintf("worker-%04d", n), comment, l.account.ClusterID)
		}
		before := len(w.Calls())
		all, err := l.List(t.Context())
		must(t, err)
		if n := len(w.Calls()) - before; len(all) != many || n > 9 { // disks, and four pages by mark and by tag
			t.Errorf("listed %d with %d requests", len(all), n)
		}
	})
}

// A list that changes while it is read is read again: of what moves to another page nothing is lost. One that changes without end is an error.
func TestListThatChangesWhileItIsRead(t *testing.T) {
	t.Parallel()
	for _, changes := range []int{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			l := newLife(t, w, "")
			l.session.page = 5
			ids := map[string]string{}
			for n := range 12 {
				comment, err := mark{Cluster: l.account.ClusterID, UID: fmt.Sprint("u", n), Token: "t"}.comment()
				must(t, err)
				name := fmt.Sprintf("worker-%02d", n)
				ids[name] = w.Make(name, comment)
			}
			left, gone := changes, 0
			w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
				res, err := next()
				if q := r.URL.Query(); left > 0 && strings.Contains(q.Get("search"), "comment=") && strings.Contains(q.Get("search"), "page 1") {
					left--
					w.Set(ids[fmt.Sprintf("worker-%02d", gone)], "", "somebody took the mark away") // so it is in the list no more, and all that follow move
					gone++
				}
				return res, err
			})
			all, err := l.List(t.Context())
			if changes == 1 && (err != nil || len(all) != 11) || changes > 1 && (provider.CodeOf(err) != provider.Unknown || !strings.Contains(fmt.Sprint(err), "changes while it is read")) {
				t.Errorf("listed %d, %v", len(all), err)
			}
		})
	}
}

// What a list is not: an answer with something else, more than was asked for, or things without an id.
func TestListsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`null`, `[]`, `""`, `{"vm": null}`, `{"vm": {}}`, `{"vm": "x"}`, `{"link": []}`, `{"vm": [{"id": "../../tags", "name": "a"}]}`, `{"vm": [{}]}`, `{"vm": [{"id": 7}]}`, "", "{", `{"vm": [{"id": "5a0e0001-0000-4000-9000-000000000001"}`} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			l := newLife(t, w, "")
			w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/vms") {
					return answered(http.StatusOK, "application/json", body), nil
				}
				return next()
			})
			all, err := l.List(t.Context())
			if provider.CodeOf(err) != provider.Unknown || err == nil || all != nil {
				t.Errorf("%s: listed %v, %v", body, all, err)
			}
			if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) != provider.Unknown || err == nil {
				t.Errorf("%s: Delete = %v", body, err)
			}
		})
	}
}

// A list is always there: an engine that says that it is not says nothing of what should be in it.
func TestListThatIsNotThereIsNoAbsence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/api/") {
				return faulty(http.StatusNotFound, "Entity not found"), nil
			}
			return next()
		})
		_, list := l.List(t.Context())
		for call, err := range map[string]error{"List": list, "Delete": l.Delete(t.Context(), l.ref), "PowerCycle": l.PowerCycle(t.Context(), l.ref)} {
			if provider.CodeOf(err) != provider.Unknown || !strings.Contains(fmt.Sprint(err), keyURL) {
				t.Errorf("%s = %v", call, err)
			}
		}
	})
}

// Codes of the engine's refusals, and of what is none.
func TestCodesOfRefusals(t *testing.T) {
	t.Parallel()
	s := &session{password: "canary", account: accountOf()}
	for _, c := range []struct {
		status         int
		reason, detail string
		want           provider.Code
	}{
		{400, "Incomplete parameters", "Vm [cluster.id|name] required for add", provider.Invalid},
		{400, "Malformed syntax", "x", provider.Invalid},
		{422, "x", "y", provider.Invalid},
		{400, "Operation Failed", "[Cannot add VM. Storage Domain cannot be accessed.]", provider.Exhausted},
		{400, "Operation Failed", "[User is not authorized to perform this action.]", provider.Denied},
		{400, "Operation Failed", "Query execution failed due to insufficient permissions.", provider.Denied},
		{403, "Operation Failed", "query execution failed due to insufficient permissions.", provider.Denied},
		{404, "Operation Failed", "Entity not found: VM", provider.NotFound},
		{409, "Operation Failed", "[Cannot add VM. Low disk space on Storage Domain data.]", provider.Exhausted},
		{409, "Operation Failed", "[Cannot add VM. The requested storage exceeds the quota.]", provider.Exhausted},
		{429, "x", "y", provider.Throttled},
		{500, "Operation Failed", "x", provider.Unknown},
		{503, "x", "y", provider.Unknown},
	} {
		fault := map[string]string{"reason": c.reason, "detail": c.detail}
		for _, said := range []any{fault, map[string]any{"async": "false", "fault": fault, "status": "failed"}} { // as start, stop and reset have it
			b, err := json.Marshal(said)
			must(t, err)
			res := answered(c.status, "application/json", "")
			got := s.judge("do it", res, b)
			if provider.CodeOf(got) != c.want || !strings.Contains(got.Error(), strings.Trim(c.detail, "[]")) || !strings.Contains(got.Error(), "do it") {
				t.Errorf("%d %s: %v (%v), want %v", c.status, b, got, provider.CodeOf(got), c.want)
			}
		}
	}
	if err := s.judge("do it", answered(200, "", ""), []byte(`{"status": "failed", "fault": {"reason": "Operation Failed", "detail": "[x]"}}`)); provider.CodeOf(err) != provider.Exhausted {
		t.Errorf("an action that failed: %v", err)
	}
	if err := s.judge("do it", answered(200, "", ""), []byte(`{"status": "complete"}`)); err != nil {
		t.Errorf("an action that is complete: %v", err)
	}
}

// An error of the wire tells no address, which has all that was asked for, and keeps its cause.
func TestErrorsOfTheWire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		w.set(func(*http.Request, func() (*http.Response, error)) (*http.Response, error) { return nil, errLost })
		_, err := l.List(t.Context())
		if !errors.Is(err, errLost) || strings.Contains(err.Error(), "engine-") || strings.Contains(err.Error(), "search") {
			t.Errorf("List = %v", err)
		}
	})
}

// A template is that of the cluster's data center, in its newest version, when it is ready.
func TestTemplates(t *testing.T) {
	t.Parallel()
	const other = "5a0e0002-0000-4000-8000-000000000002"
	for _, c := range []struct {
		name, all, want, code string
	}{
		{"the newest version", `{"id": "%[1]s1", "name": "rhcos", "version": {"version_number": 1}}, {"id": "%[1]s2", "name": "rhcos", "version": {"version_number": "3"}}, {"id": "%[1]s3", "name": "rhcos", "version": {"version_number": 2}}`, "2", ""},
		{"of no cluster", `{"id": "%[1]s1", "name": "rhcos"}`, "1", ""},
		{"of another data center", `{"id": "%[1]s1", "name": "rhcos", "cluster": {"id": "` + other + `"}}`, "", "providerSpec.value.template_name"},
		{"of another name", `{"id": "%[1]s1", "name": "rhcos2"}`, "", "providerSpec.value.template_name"},
		{"that is locked", `{"id": "%[1]s1", "name": "rhcos", "status": "locked"}`, "", "is locked"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			l := newLife(t, w, "")
			const ids = "5a0e0003-0000-4000-8000-00000000000"
			w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/templates"):
					return answered(200, "application/json", fmt.Sprintf(`{"template": [`+c.all+`]}`, ids)), nil
				case strings.HasSuffix(r.URL.Path, "/diskattachments"):
					return answered(200, "application/json", `{"disk_attachment": [{"id": "`+ids+`9", "bootable": "true", "disk": {"provisioned_size": "17179869184"}}]}`), nil
				}
				return next()
			})
			raw, err := l.Resolve(t.Context(), specWith(""))
			var req request
			_ = json.Unmarshal(raw, &req)
			if c.want != "" && (err != nil || req.Template != ids+c.want || !slices.Equal(req.Disks, []string{ids + "9"})) {
				t.Errorf("%s: %+v, %v", c.name, req, err)
			}
			if c.want == "" && (err == nil || provider.CodeOf(err) == provider.Invalid || !strings.Contains(err.Error(), c.code)) {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}

// What a spec names and the engine lacks is told by field and value.
func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	const none = "5a0e00ff-0000-4000-8000-000000000001"
	for more, names := range map[string][]string{
		`"cluster_id": "` + none + `"`:                                                {"cluster_id", none},
		`"template_name": "rhcos-9"`:                                                  {"template_name", "rhcos-9"},
		`"storage_domain_id": "` + none + `"`:                                         {"storage_domain_id", none},
		`"cpu": null, "memory_mb": null, "instance_type_id": "` + none + `"`:          {"instance_type_id", none},
		`"affinity_groups_names": ["workers", "gpu"]`:                                 {"affinity_groups_names[1]", "gpu"},
		`"cluster_id": "` + none[:35] + `2", "auto_pinning_policy": "resize_and_pin"`: {"cluster_id"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLife(t, newWire(), "")
			_, err := l.Resolve(t.Context(), specWith(more))
			if provider.CodeOf(err) != provider.NotFound {
				t.Errorf("%s: %v", more, err)
			}
			for _, name := range names {
				if !strings.Contains(fmt.Sprint(err), name) {
					t.Errorf("%s: %v does not name %s", more, err, name)
				}
			}
		})
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for n := range p {
		p[n] = ' '
	}
	return len(p), nil
}

func (endless) Close() error { return nil }

// An answer that does not end is read to a limit, and proves nothing.
func TestAnswersThatDoNotEnd(t *testing.T) {
	t.Parallel()
	w := newWire()
	l := newLife(t, w, "")
	for _, status := range []int{http.StatusOK, http.StatusConflict} {
		w.set(func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
			res := answered(status, "application/json", "")
			res.Body = endless{}
			return res, nil
		})
		if _, err := l.List(t.Context()); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("%d: List = %v", status, err)
		}
	}
}

// What a spec states is its capacity, also where it states absurd numbers: no sum of them turns.
func TestCapacityOfASpec(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]provider.InstanceType{
		``:    {Arch: "amd64", MilliCPU: 4000, Memory: 16348 << 20, Disk: 31 << 30},
		typed: {Name: "5a0e0006-0000-4000-8000-000000000001", Arch: "amd64", Disk: 31 << 30},
		`"cpu": {"sockets": 9223372036854775807, "cores": 2, "threads": 2}, "memory_mb": 9223372036854775807`: {Arch: "amd64", MilliCPU: mostOf * 2 * 2 * 1000, Memory: most << 20, Disk: 31 << 30},
		`"cpu": {"sockets": -1, "cores": 2, "threads": 2}, "memory_mb": -1`:                                   {Arch: "amd64", Memory: -1 << 20, Disk: 31 << 30},
	} {
		got, err := instanceType(specWith(more))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, %v; want %+v", more, got, err, want)
		}
	}
}
