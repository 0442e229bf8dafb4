// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// FuzzMarked: what people write into a comment is no mark of a Machine unless it is one whole, and what the driver writes is read as it was.
func FuzzMarked(f *testing.F) {
	for _, m := range []mark{{Cluster: "c", UID: "u", Token: "t"}, {Cluster: "c", UID: "u", ID: "i", Disks: []string{"a", "b"}, Launched: true}} {
		text, err := m.comment()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)-2])
		f.Add(strings.Replace(text, `"u"`, `"v"`, 1))
	}
	f.Add("")
	f.Add("machine-functions- {}")
	f.Add("the installer's own " + `{"cluster": "c", "uid": "u"}`)
	f.Fuzz(func(t *testing.T, comment string) {
		m, ok := marked(comment)
		if !ok {
			if m.UID != "" || m.Cluster != "" {
				t.Errorf("%q is no mark, and says %+v", comment, m)
			}
			return
		}
		if m.UID == "" || m.Cluster == "" || !strings.HasPrefix(comment, prefix(m.Cluster, m.UID)) {
			t.Errorf("%q is the mark %+v, which no search finds", comment, m)
		}
		text, err := m.comment()
		again, still := marked(text)
		if b, _ := json.Marshal(m); err != nil || !still || utf8.Valid(b) && again.UID != m.UID {
			t.Errorf("%q becomes %q, %v", comment, text, err)
		}
	})
}

// FuzzJudge: what an answer says never panics, is absence or refusal only as a fault of the engine's, and never tells the password.
func FuzzJudge(f *testing.F) {
	f.Add(404, `{"reason": "Operation Failed", "detail": "Entity not found"}`)
	f.Add(409, `{"reason": "Operation Failed", "detail": "[Cannot run VM. canary]"}`)
	f.Add(400, `{"detail": "x"}`)
	f.Add(200, `{"status": "failed", "fault": {"reason": "x"}}`)
	f.Add(400, `{"async": "false", "status": "failed", "fault": {"reason": "Operation Failed", "detail": "[Cannot run VM. canary]"}}`)
	f.Add(404, `<html>`)
	f.Add(404, ``)
	f.Add(500, `{"reason": null, "detail": 7}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		s := &session{password: "canary"}
		err := s.judge("do it", &http.Response{StatusCode: status}, []byte(body))
		if err == nil {
			if status < 200 || status > 299 {
				t.Errorf("%d is no error", status)
			}
			return
		}
		var fault faultBody
		var action struct{ Fault faultBody }
		readable := json.Unmarshal([]byte(body), &fault) == nil && fault != (faultBody{}) || json.Unmarshal([]byte(body), &action) == nil && action.Fault != (faultBody{}) || status == http.StatusNotFound && strings.TrimSpace(body) == ""
		if code := provider.CodeOf(err); code != provider.Unknown && !readable && status > 299 || code == provider.NotFound && status != http.StatusNotFound {
			t.Errorf("%d %q is %v: %v", status, body, code, err)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%d %q tells the password: %v", status, body, err)
		}
	})
}

// FuzzInstance: whatever a guest, or an engine, says of an instance is told without a panic, and only as addresses that are some.
func FuzzInstance(f *testing.F) {
	f.Add(`{"id": "a", "name": "worker-a", "status": "up", "creation_time": 1500968107245, "nics": {"nic": [{"mac": {"address": "m"}}]}, "reported_devices": {"reported_device": [{"mac": {"address": "M"}, "ips": {"ip": [{"address": "192.0.2.4"}, {"address": "::1%x"}]}}]}}`)
	f.Add(`{"id": "a", "creation_time": "1500968107245", "comment": "machine-functions-"}`)
	f.Add(`{"nics": {"nic": null}, "reported_devices": {"reported_device": [{"mac": {"address": ""}}]}}`)
	f.Add(`{"creation_time": "-9223372036854775808", "status": "\u0000"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var i instance
		if json.Unmarshal([]byte(text), &i) != nil {
			return
		}
		i.Mark, _ = marked(i.Comment)
		in := (&driver{}).told(i)
		if in.State == "" || in.State == provider.StateFailed || in.UID != "" && i.Mark.UID == "" || !json.Valid(in.Status) {
			t.Errorf("%s is told as %+v", text, in)
		}
		for _, a := range in.Addresses[1:] {
			ip, err := netip.ParseAddr(a.Address)
			if err != nil || a.Type != corev1.NodeInternalIP || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.Zone() != "" {
				t.Errorf("%s has the address %v", text, a)
			}
		}
	})
}
