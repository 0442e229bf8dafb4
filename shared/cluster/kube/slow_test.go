// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// silent answers GET requests with a Pod and others never.
type silent struct{ uid string }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || s.uid == "" {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"ns","uid":"` + s.uid + `"}}`
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {typeJSON}}, Body: io.NopCloser(bytes.NewBufferString(body)), Request: r,
	}, nil
}

func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, &rest.Config{Host: "http://api", Transport: silent{}})
		begin := time.Now()
		if names, err := observeMachines(t, c); err == nil || time.Since(begin) != requestTimeout {
			t.Errorf("after %v: machines %v, error %v", time.Since(begin), names, err)
		}
	})
}

// TestSilentEviction is what the real server does to a request with the UID of an earlier Pod of that name.
func TestSilentEviction(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "old"}}
	for uid, gone := range map[string]bool{"old": false, "new": true} {
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, &rest.Config{Host: "http://api", Transport: silent{uid}})
			err := c.Apply(t.Context(), plan.Evict{Pod: pod})
			if err == nil || errors.Is(err, cluster.ErrGone) != gone {
				t.Errorf("pod %s: %v", uid, err)
			}
		})
	}
}

// watchless answers lists at once, and watches never, as a proxy does that keeps an answer until it has all of it.
type watchless struct{ silent }

func (w watchless) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("watch") {
		return w.silent.RoundTrip(r)
	}
	revision := strconv.FormatInt(time.Now().UnixNano(), 10)
	body := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"` + revision + `"},"items":[{"metadata":{"name":"p","namespace":"ns"}}]}`
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {typeJSON}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
		Body: io.NopCloser(bytes.NewBufferString(body)), Request: r,
	}, nil
}

// A watch that is not answered is not waited for by each scan: of two lists that would be nearly all the time that one has (R-L4).
func TestSilentWatchIsNotWaitedForEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := keeping(t, &rest.Config{Host: "http://api", Transport: watchless{}}, Options{FieldManager: "tester", Watched: []plan.Kind{"Pod"}})
		waited := 0
		for range 18 { // of three minutes
			begin := time.Now()
			if got, err := observePods(t, c); err != nil || len(got) != 1 {
				t.Fatalf("pods %q, error %v", got, err)
			}
			if time.Since(begin) > time.Second {
				waited++
			}
			time.Sleep(10*time.Second - time.Since(begin))
		}
		if waited == 0 || waited > 3 {
			t.Errorf("%d of 18 scans waited, want one in a minute", waited)
		}
	})
}
