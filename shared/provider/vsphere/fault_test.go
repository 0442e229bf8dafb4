// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// faults are what may become of a call on its way, each with whether the vCenter did it.
var faults = map[string]struct {
	effect bool
	answer func(effect *http.Response) (*http.Response, error)
	names  string
	code   provider.Code
}{
	"the answer is lost": {true, func(*http.Response) (*http.Response, error) { return nil, errors.New("connection reset by peer") }, "connection reset", provider.Unknown},
	"the answer is cut":  {true, cutBody, "EOF", provider.Unknown},
	"the call is lost":   {false, func(*http.Response) (*http.Response, error) { return nil, errors.New("i/o timeout") }, "i/o timeout", provider.Unknown},
	"overloaded after":   {true, page(503, "text/plain", "busy", ""), "overloaded", provider.Unknown},
	"too many requests":  {false, page(429, "application/json", "{}", ""), "too many requests", provider.Throttled},
	"a proxy's page":     {false, page(502, "text/html; charset=utf-8", "<html><p>Bad Gateway</html>", ""), "proxy", provider.Unknown},
	"a login page":       {false, page(200, "text/html", "<html><br>Log in", ""), "proxy", provider.Unknown},
	"no such page":       {false, page(404, "text/plain", "not here", ""), "404", provider.Unknown},
}

func page(status int, kind, body, after string) func(*http.Response) (*http.Response, error) {
	return func(*http.Response) (*http.Response, error) {
		h := http.Header{"Content-Type": {kind}}
		if after != "" {
			h.Set("Retry-After", after)
		}
		return &http.Response{Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: new(http.Request)}, nil
	}
}

func cutBody(res *http.Response) (*http.Response, error) {
	b, err := io.ReadAll(res.Body)
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(string(b[:len(b)/2]))), -1
	return res, err
}

// once lets the n-th call of a method fail, or of all if it names none.
func once(w *wire, method string, n int, f string) {
	fault := faults[f]
	var mu sync.Mutex
	w.set(func(m string, next func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		counts := method == "" || m == method
		if counts {
			n--
		}
		hit := counts && n == 0
		mu.Unlock()
		if !hit {
			return next()
		}
		res := &http.Response{Request: new(http.Request)}
		if fault.effect {
			var err error
			if res, err = next(); err != nil {
				return nil, err
			}
		}
		req := res.Request
		res, err := fault.answer(res)
		if res != nil {
			res.Request = req
			if req == nil || req.URL == nil {
				res.Request = &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/sdk"}}
			}
		}
		return res, err
	})
}

// Whatever becomes of whichever call: one instance, then none.
func TestNoFaultMakesTwoInstancesOrLeavesOne(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	for f := range faults { //nolint:paralleltest // each part counts all instances of the one vCenter
		if testing.Short() && f != "the answer is lost" && f != "a proxy's page" { // all of them take a minute
			continue
		}
		for _, method := range []string{"CloneVM_Task", "ReconfigVM_Task", "PowerOnVM_Task", "RetrievePropertiesEx", "FindAllByUuid", "PowerOffVM_Task", "Destroy_Task"} {
			t.Run(f+" of "+method, func(t *testing.T) {
				d, w := v.wired(t, v.account())
				resolved, err := d.Resolve(t.Context(), v.spec(nil))
				must(t, err)
				r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
				for n := 1; n <= 2 && (n == 1 || !testing.Short()); n++ {
					once(w, method, n, f)
					_, err = proceed(t.Context(), d, r, resolved)
					must(t, err)
					if all := v.machines(t); len(all) != 1 {
						t.Fatalf("%d instances", len(all))
					}
					begin := time.Now()
					for err = error(nil); provider.CodeOf(err) != provider.NotFound; err = d.Delete(t.Context(), r) {
						if time.Since(begin) > 20*time.Second {
							t.Fatalf("Delete = %v", err)
						}
					}
					w.set(nil)
					if all := v.machines(t); len(all) != 0 {
						t.Fatalf("%d instances are left", len(all))
					}
				}
			})
		}
	}
}

func TestFaultIsCodedAndNamesItsCause(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	for f, fault := range faults {
		d, w := v.wired(t, v.account())
		_, err := d.List(t.Context())
		must(t, err)
		once(w, "CreateContainerView", 1, f)
		_, err = d.List(t.Context())
		if provider.CodeOf(err) != fault.code || !strings.Contains(fmt.Sprint(err), fault.names) {
			t.Errorf("%s: List = %v (%v), want %v naming %q", f, err, provider.CodeOf(err), fault.code, fault.names)
		}
		if _, ok := errors.AsType[*provider.Error](err); !ok {
			t.Errorf("%s: no code", f)
		}
		if strings.Contains(fmt.Sprint(err), "canary") {
			t.Errorf("%s tells a secret: %v", f, err)
		}
	}
}

// A list that is cut off is no list.
func TestPageThatDoesNotComeIsAnError(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	for _, name := range []string{"worker-a", "worker-b", "worker-c"} {
		_, _, err := create(t, d, name, v.spec(nil))
		must(t, err)
	}
	c, err := d.session.connect(t.Context())
	must(t, err)
	all, err := d.List(t.Context())
	must(t, err)
	var refs []reference
	for _, m := range v.machines(t) {
		refs = append(refs, m.Self)
	}
	before := w.count("ContinueRetrievePropertiesEx")
	got, err := pages(t.Context(), c, of(refs, "name"), 1)
	if err != nil || len(got) != len(all) || w.count("ContinueRetrievePropertiesEx")-before != 2 {
		t.Fatalf("pages = %d, %v, %d calls", len(got), err, w.count("ContinueRetrievePropertiesEx")-before)
	}
	once(w, "ContinueRetrievePropertiesEx", 2, "the answer is cut")
	if got, err = pages(t.Context(), c, of(refs, "name"), 1); err == nil {
		t.Errorf("pages = %v without the last", got)
	}
}

// What a list that takes too long has made in the vCenter does not stay there until the session ends: of a vCenter that is slow each
// scan would leave one more.
func TestListThatTakesTooLongLeavesNoView(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	_, err := d.List(t.Context())
	must(t, err)
	listed := time.Now().Add(2 * time.Second) // when no time is left to list
	ctx, cancel := context.WithDeadline(t.Context(), listed.Add(tidying))
	t.Cleanup(cancel)
	made, left := 0, 0
	w.set(func(method string, next func() (*http.Response, error)) (*http.Response, error) {
		if method == "RetrievePropertiesEx" {
			time.Sleep(time.Until(listed) + time.Millisecond)
		}
		res, err := next()
		switch {
		case method == "CreateContainerView" && err == nil:
			made, left = made+1, left+1
		case method == "DestroyView" && err == nil:
			left--
		}
		return res, err
	})
	if _, err := d.List(ctx); !errors.Is(err, context.DeadlineExceeded) || made != 1 || left != 0 {
		t.Errorf("List = %v, %d views of %d are left", err, left, made)
	}
	if ctx.Err() == nil {
		t.Error("what the time that was given cut off has ended before it: who gave it takes that for an answer (G6)")
	}
}

// The scan reads a vCenter with the same few calls however many instances it has.
func TestListCostsAHandfulOfCalls(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	calls := func() int {
		before := len(w.sent)
		_, err := d.List(t.Context())
		must(t, err)
		return len(w.sent) - before
	}
	calls() // logs in
	for i := range 8 {
		_, _, err := create(t, d, fmt.Sprintf("worker-%d", i), v.spec(nil))
		must(t, err)
	}
	if n := calls(); n != 4 { // view, marks, details, view's end
		t.Errorf("List of 8 instances made %d calls: %v", n, w.sent[len(w.sent)-n:])
	}
	const many = 2000
	v.multiply(t, "worker-0", many-8)
	c, err := d.session.connect(t.Context())
	must(t, err)
	w.next.(throttle.Transport).Base.(*http.Transport).ResponseHeaderTimeout = 0
	before := len(w.sent)
	all, err := d.marked(t.Context(), c) // without any deadline, as vcsim is slow
	marks := many/pageSize + 1           // pages of them; the template and the model's own are on the last
	if n := len(w.sent) - before; err != nil || len(all) != many || n != 2+marks+many/pageSize {
		t.Errorf("List of %d instances, %v, made %d calls", len(all), err, n)
	}
	if n := w.count("Login"); n != 1 {
		t.Errorf("%d logins", n)
	}
}

// Beside instances that go all the time, as when a large set is scaled down, a list ends: what is gone by then is left out.
func TestListBesideInstancesThatGo(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	_, _, err := create(t, d, "worker-a", v.spec(nil))
	must(t, err)
	const n = 6
	v.multiply(t, "worker-a", n-1)
	var going []reference
	for _, m := range v.machines(t) {
		going = append(going, m.Self)
	}
	read := 0
	w.set(func(method string, next func() (*http.Response, error)) (*http.Response, error) {
		if method == "RetrievePropertiesEx" {
			if read++; read > 1 && len(going) > 1 { // after the marks
				v.service.Context.Map.Remove(v.service.Context, going[0])
				going = going[1:]
			}
		}
		return next()
	})
	all, err := d.List(t.Context())
	if err != nil || len(all) != 1 || w.count("CreateContainerView") != 1 {
		t.Errorf("List = %d instances, %v, after %d views", len(all), err, w.count("CreateContainerView"))
	}
}

// multiply makes n more of an instance, which differ in what has to be different.
func (v *vcenter) multiply(t *testing.T, name string, n int) {
	t.Helper()
	api := v.service.Context.Map
	one := api.Get(v.machines(t)[name].Self).(*simulator.VirtualMachine)
	folder := api.Get(*one.Parent).(*simulator.Folder)
	for range n {
		id := string(uuid.NewUUID())
		more := &simulator.VirtualMachine{VirtualMachine: one.VirtualMachine}
		more.Self.Value, more.Name = "vm-"+id, "worker-"+id
		config := *one.Config
		config.Uuid, config.InstanceUuid, config.ExtraConfig = string(uuid.NewUUID()), id, slices.Clone(one.Config.ExtraConfig)
		for i, o := range config.ExtraConfig {
			if old := o.GetOptionValue(); old.Key == keyMark {
				config.ExtraConfig[i] = option(keyMark, strings.ReplaceAll(old.Value.(string), one.Config.InstanceUuid, id))
			}
		}
		more.Config = &config
		api.Put(more)
		folder.ChildEntity = append(folder.ChildEntity, more.Self)
	}
}

func TestSessionThatEndedIsMadeAgain(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, _, err := create(t, d, "worker-a", v.spec(nil))
	must(t, err)
	for sessions := 2; sessions <= 3; sessions++ {
		c, err := d.session.connect(t.Context())
		must(t, err)
		_, err = methods.Logout(t.Context(), d.session.soap, &types.Logout{This: *c.ServiceContent.SessionManager})
		must(t, err)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if found, err := d.Find(t.Context(), r); err != nil || len(found) != 1 {
					t.Errorf("Find = %v, %v", found, err)
				}
			})
		}
		wg.Wait()
		if n := w.count("Login"); n != sessions {
			t.Errorf("%d logins, want %d: one for all who ask at once", n, sessions)
		}
	}
}

func TestWrongCredentialsAreTriedOnce(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	v.service.Listen = &url.URL{Host: v.host, User: url.UserPassword("admin", "right")}
	d, w := v.wired(t, v.account())
	for range 3 {
		_, err := d.List(t.Context())
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || e.Code != provider.Denied || e.RetryAfter <= 0 || e.RetryAfter > refusedFor {
			t.Fatalf("List = %v", err)
		}
		for _, want := range []string{"machines/vsphere-cloud-credentials", keyOf(v.host) + ".password"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not name %s", err, want)
			}
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%v tells the password", err)
		}
	}
	if n := w.count("Login"); n != 1 {
		t.Errorf("%d logins: an account locks after a few", n)
	}
}

func TestSecretThatLacksKeys(t *testing.T) {
	t.Parallel()
	a := provider.Account{ClusterID: "c", Region: "vc.example.com", Namespace: "machines", Secret: "creds"}
	for want, credentials := range map[string]map[string][]byte{
		"vc.example.com.username": {},
		"vc.example.com.password": {"vc.example.com.username": []byte("u")},
		"vc.example.com.ca":       {"vc.example.com.username": []byte("u"), "vc.example.com.password": []byte("p"), "vc.example.com.ca": []byte("?")},
	} {
		a.Credentials = credentials
		_, err := open(t.Context(), a, nil)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "machines/creds") {
			t.Errorf("Open = %v, want Denied naming %s", err, want)
		}
	}
}

// Whoever writes a providerSpec names a host that the Secret knows, at 443 or at the port that the Secret names: no other port of
// it is asked.
func TestPortsThatTheSecretDoesNotName(t *testing.T) {
	t.Parallel()
	for server, port := range map[string]string{"vc.example.com": "", "vc.example.com:443": "8443", "vc.example.com:8443": "8443", "vc.example.com:22": "", "vc.example.com:6443": "8443"} {
		a := provider.Account{ClusterID: "c", Region: server, Namespace: "machines", Secret: "creds", Credentials: map[string][]byte{
			"vc.example.com.username": []byte("u"), "vc.example.com.password": []byte("p"), "vc.example.com.port": []byte(port),
		}}
		_, err := open(t.Context(), a, nil)
		if refused := server == "vc.example.com:22" || server == "vc.example.com:6443"; (provider.CodeOf(err) == provider.Denied) != refused {
			t.Errorf("%s, port %q: %v", server, port, err)
		}
	}
}

// A clone that takes long is waited for, and taken back when its Machine is deleted meanwhile: nothing of it can be
// found yet.
func TestCloneThatRunsIsNoAbsence(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	root := v.client(t).ServiceContent.RootFolder
	running := types.TaskInfo{State: types.TaskInfoStateRunning, Cancelable: true, Entity: &root, Name: "CloneVM_Task"}
	d, w := v.wired(t, v.account())
	task := &simulator.Task{Execute: func(*simulator.Task) (types.AnyType, types.BaseMethodFault) { return nil, nil }}
	task.Self, task.Info = reference{Type: "Task", Value: "task-slow"}, running
	v.service.Context.Map.Put(task)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Progress: []byte(`{"step":"clone","task":{"type":"Task","value":"task-slow"}}`)}
	resolved, err := d.Resolve(t.Context(), v.spec(nil))
	must(t, err)
	i, err := d.Create(t.Context(), r, resolved)
	if err != nil || i.State != provider.StateIncomplete || !slices.Equal(i.Progress, r.Progress) {
		t.Errorf("Create = %+v, %v", i, err)
	}
	once(w, "", 1, "a proxy's page")
	if err := d.Delete(t.Context(), r); err == nil || provider.CodeOf(err) == provider.NotFound {
		t.Errorf("Delete = %v, though nobody could look at the clone that is being made", err)
	}
	w.set(nil)
	if err := d.Delete(t.Context(), r); err != nil {
		t.Errorf("Delete = %v, though a clone is being made", err)
	}
	others := &simulator.Task{Execute: task.Execute} // of a vCenter that counts its tasks from the beginning again
	others.Self, others.Info = reference{Type: "Task", Value: "task-of-others"}, running
	v.service.Context.Map.Put(others)
	r.Progress = []byte(`{"step":"clone","task":{"type":"Task","value":"task-of-others"},"template":"vm-1"}`)
	if err := d.Delete(t.Context(), r); err != nil {
		t.Errorf("Delete = %v, though somebody's clone is being made", err)
	}
	v.service.Context.WithLock(others, func() { others.Info.Name = "Destroy_Task" })
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete = %v, though the task makes no clone", err)
	}
	if w.count("CancelTask") != 1 || w.count("CloneVM_Task") != 0 {
		t.Errorf("calls: %v", w.sent)
	}
	own, _ := begun(t, d, v.spec(nil))
	p, err := provider.ProgressOf[progress](own)
	must(t, err)
	info, err := await(t.Context(), v.client(t), *p.Task, patience)
	if err != nil || info.Entity.Value != p.Template {
		t.Errorf("a clone is recorded to be of %q, and is one of %v, %v", p.Template, info.Entity, err)
	}
}

// That nobody may look at a clone's task now, for whatever reason, is no refusal of the clone: it is being made.
func TestCloneThatCannotBeLookedAtIsNotRefused(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	resolved, err := d.Resolve(t.Context(), v.spec(nil))
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Progress: []byte(`{"step":"clone","task":{"type":"Task","value":"task-slow"}}`)}
	w.set(func(string, func() (*http.Response, error)) (*http.Response, error) {
		return page(429, "application/json", "{}", "")(nil)
	})
	in, err := d.Create(t.Context(), r, resolved)
	if provider.CodeOf(err) != provider.Unknown || !strings.Contains(fmt.Sprint(err), "too many requests") || !slices.Equal(in.Progress, r.Progress) {
		t.Errorf("Create = %+v, %v (%v)", in, err, provider.CodeOf(err))
	}
}

// refusal is a vCenter's answer to a call that it does not allow in a state.
const refusal = `<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><soapenv:Fault>
<faultcode>ServerFaultCode</faultcode><faultstring>The operation is not allowed in the current state.</faultstring><detail>
<InvalidStateFault xmlns="urn:vim25" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="InvalidState"/></detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>`

// An instance that its vCenter will not destroy in its state, as an orphaned one, stays for ever: that is told (R-L2).
func TestDestroyThatIsRefusedIsTold(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, _, err := create(t, d, "worker-a", v.spec(nil))
	must(t, err)
	w.set(func(m string, next func() (*http.Response, error)) (*http.Response, error) {
		if m != "Destroy_Task" {
			return next()
		}
		res, err := page(500, "text/xml", refusal, "")(nil)
		res.Request = &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/sdk"}}
		return res, err
	})
	err = remove(t.Context(), d, r)
	if provider.CodeOf(err) != provider.Exhausted {
		t.Errorf("Delete = %v", err)
	}
	for _, want := range []string{"delete worker-a", "which is connected", "not allowed in the current state"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	w.set(nil)
	if err := remove(t.Context(), d, r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("once it is allowed, Delete = %v", err)
	}
}

// That a file of an instance is missing is no absence of the instance, which is there, and may run.
func TestInstanceThatLacksAFileIsNotGone(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, _, err := create(t, d, "worker-a", v.spec(nil))
	must(t, err)
	for _, method := range []string{"PowerOffVM_Task", "Destroy_Task"} {
		w.set(func(m string, next func() (*http.Response, error)) (*http.Response, error) {
			if m != method {
				return next()
			}
			res, err := page(500, "text/xml", strings.ReplaceAll(refusal, "InvalidState", "FileNotFound"), "")(nil)
			res.Request = &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/sdk"}}
			return res, err
		})
		if err := remove(t.Context(), d, r); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "delete worker-a") {
			t.Errorf("%s: Delete = %v (%v), though it is there", method, err, provider.CodeOf(err))
		}
	}
}

// elsewhere sends whoever asks to another host, and remembers who was asked.
type elsewhere []string

// RoundTrip implements [http.RoundTripper].
func (e *elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	*e = append(*e, r.URL.Host)
	res, err := page(http.StatusFound, "text/plain", "over there", "")(nil)
	res.Request = r
	res.Header.Set("Location", "https://elsewhere.test/")
	return res, err
}

// What is said to a vCenter, the password too, is said to nobody else, wherever that sends us (RELIABILITY 4).
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	c, hosts := &http.Client{}, &elsewhere{}
	guard(c, &http.Transport{}, throttle.New(100, 100))
	c.Transport = hosts
	res, err := c.Get("https://vcenter.test/sdk")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close() // nobody reads it
	if len(*hosts) != 1 {
		t.Errorf("%v are asked, want the vCenter alone", *hosts)
	}
}

// An answer that does not end is read to its limit, and proves nothing: every client goes through the transport that sees to it.
func TestAnswersThatDoNotEnd(t *testing.T) {
	t.Parallel()
	s, err := newSession(provider.Account{
		Region: "vc.test", Namespace: "n", Secret: "s", Credentials: map[string][]byte{"vc.test.username": []byte("u"), "vc.test.password": []byte("p")},
	})
	if err != nil {
		t.Fatal(err)
	}
	only, _ := s.soap.Client.Transport.(vcenterOnly)
	limited, _ := only.next.(throttle.Transport)
	const size = 8 << 20
	body := strings.NewReader(`<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><Fault><faultcode>ServerFaultCode</faultcode><faultstring>` + strings.Repeat("x", size))
	limited.Base = roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(body), Request: r}, nil
	})
	s.soap.Client.Transport = vcenterOnly{limited}
	_, err = vim25.NewClient(t.Context(), s.soap)
	if read := int(body.Size()) - body.Len(); provider.CodeOf(s.coded(err)) != provider.Unknown || read == 0 || read > 2<<20 {
		t.Errorf("%d bytes were read, error %.300v", read, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Somebody restores a template, a network or a folder beside the one of that name: until one of them is gone Machines wait, and none fails,
// as none would be made in its place afterwards.
func TestTwoOfOneNameFailNoMachine(t *testing.T) {
	t.Parallel()
	s := &session{account: provider.Account{Region: "vc"}}
	for _, err := range []error{&find.MultipleFoundError{}, &find.DefaultMultipleFoundError{}, &find.NotFoundError{}, &find.DefaultNotFoundError{}} {
		if got := provider.CodeOf(s.coded(fmt.Errorf("template: %w", err))); got != provider.NotFound {
			t.Errorf("%T: %v, want NotFound", err, got)
		}
	}
}
