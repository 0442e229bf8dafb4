// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.uber.org/zap"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/eventing/pkg/eventfilter"
	"knative.dev/eventing/pkg/eventfilter/subscriptionsapi"
	"knative.dev/eventing/pkg/eventingtls"
	"knative.dev/eventing/pkg/kncloudevents"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// The filter's server closes a connection that was idle for 10 s, and the scan comes every 10 s: now and then the channel writes an event
// to a connection that is just being closed. Go sends no POST a second time by itself, so every Trigger has to ask for it.
func TestClosedConnectionsLoseNoEvent(t *testing.T) {
	t.Parallel()
	for _, trigger := range append(triggers(t, manifests(t)), otherTriggers(t)...) {
		t.Run(trigger.Name, func(t *testing.T) {
			t.Parallel()
			filter, channel := newFilter(t, http.StatusAccepted, 1), newChannel(t, trigger)
			for range 2 {
				if err := channel.send(t, filter); err != nil {
					t.Error(err)
				}
			}
			if got := filter.asked.Load(); got != 3 {
				t.Errorf("the filter was asked %d times, want once, once in vain and once more", got)
			}
		})
	}
}

// A function that cannot do a scan is asked for it as often as about an object, in a quarter of a minute: there is one Trigger for both. What
// wakes at the clock alone, and whoever asks a question, is asked once more and no oftener: the first has nothing else to hear of, the second
// costs a computation each time.
func TestHowOftenItIsSent(t *testing.T) {
	t.Parallel()
	looked := map[int32]int{}
	for _, trigger := range append(triggers(t, manifests(t)), otherTriggers(t)...) {
		want := int32(2)
		switch takes, objects := takesTicks(t, trigger), strings.Contains(fmt.Sprint(trigger.Spec.Filters), "apiserver"); {
		case objects:
			want = 6
		case !takes && trigger.Name != "evaluate-autoscale-simulate":
			continue // decisions, for whom they inform
		}
		looked[want]++
		t.Run(trigger.Name, func(t *testing.T) {
			t.Parallel()
			filter, channel := newFilter(t, http.StatusServiceUnavailable, 100), newChannel(t, trigger)
			channel.retries.Backoff = func(int, *http.Response) time.Duration { return 0 }
			if err := channel.send(t, filter); err == nil {
				t.Error("who refused an event has taken it")
			}
			if got := filter.asked.Load(); got != want {
				t.Errorf("the filter was asked %d times, want %d", got, want)
			}
		})
	}
	if looked[6] != 7 || looked[2] != 3 {
		t.Errorf("looked at Triggers of so many tries: %v", looked)
	}
}

func otherTriggers(t *testing.T) []eventingv1.Trigger {
	t.Helper()
	return triggers(t, files(t, "triggers/overlays/approve-node/trigger.yaml", "overlays/shadow/triggers.yaml", "docs/examples/tell-decisions/triggers.yaml"))
}

func takesTicks(t *testing.T, trigger eventingv1.Trigger) bool {
	t.Helper()
	filters := subscriptionsapi.CreateSubscriptionsAPIFilters(zap.NewNop(), trigger.Spec.Filters)
	for _, scan := range []string{"fast", "sweep"} {
		if filters.Filter(t.Context(), tick(scan)) == eventfilter.PassFilter {
			return true
		}
	}
	return false
}

func tick(scan string) cloudevents.Event {
	e := cloudevents.NewEvent()
	e.SetID("1")
	e.SetSource("/scan")
	e.SetType(sourcesv1.PingSourceEventType)
	e.SetExtension("scan", scan)
	return e
}

// channel sends as the one before the Broker's filter, in the way that a Trigger says.
type channel struct {
	sender  *kncloudevents.Dispatcher
	retries kncloudevents.RetryConfig
}

func newChannel(t *testing.T, trigger eventingv1.Trigger) channel {
	t.Helper()
	retries, err := kncloudevents.RetryConfigFromDeliverySpec(*trigger.Spec.Delivery)
	if err != nil {
		t.Fatal(err)
	}
	return channel{kncloudevents.NewDispatcher(eventingtls.ClientConfig{}, nil), retries}
}

func (c channel) send(t *testing.T, to *filter) error {
	t.Helper()
	_, err := c.sender.SendEvent(t.Context(), tick("fast"), duckv1.Addressable{URL: to.url}, kncloudevents.WithRetryConfig(&c.retries))
	return err
}

// filter is a server that closes a connection, as one that was idle for too long, when the next request is already on it.
type filter struct {
	url   *apis.URL
	asked atomic.Int32
}

// newFilter starts a filter whose connections last for so many answers.
func newFilter(t *testing.T, status, lasts int) *filter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	f := &filter{url: apis.HTTP(l.Addr().String())}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			go f.serve(c, status, lasts)
		}
	}()
	return f
}

func (f *filter) serve(c net.Conn, status, lasts int) {
	defer func() { _ = c.Close() }()
	for requests := bufio.NewReader(c); ; lasts-- {
		if _, err := http.ReadRequest(requests); err != nil {
			return
		}
		if f.asked.Add(1); lasts == 0 {
			return
		}
		if _, err := fmt.Fprintf(c, "HTTP/1.1 %d .\r\nContent-Length: 0\r\n\r\n", status); err != nil {
			return
		}
	}
}
