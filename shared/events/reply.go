// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// maxReply bounds what a decision tells its subscribers; brokers drop what is larger.
const maxReply = 64 << 10

// Decision is the data of the event that a function replies with when it wanted something done.
type Decision struct {
	Function string `json:"function"`
	Subject  string `json:"subject,omitempty"` // kind/name of who woke it; empty on a tick
	DryRun   bool   `json:"dryRun,omitempty"`
	Plan     string `json:"plan"` // the text form; cut after 64 KiB
}

// Reply answers a request: 202 without a body, the decision as a CloudEvent with 200, or the status of err with a
// code and no error chain, because brokers copy the body into the dead letter. It answers exactly once.
func Reply(ctx context.Context, w http.ResponseWriter, id string, d *Decision, err error) error {
	if err != nil || d == nil {
		status := Status(err)
		if retry, ok := errors.AsType[*RetryError](err); ok && retry.After > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(retry.After.Seconds()))))
		}
		w.WriteHeader(status)
		if err != nil {
			_, err = w.Write([]byte(http.StatusText(status)))
		}
		return err
	}
	if len(d.Plan) > maxReply {
		d.Plan = strings.ToValidUTF8(d.Plan[:maxReply], "")
	}
	ev := event.New()
	ev.SetID(id)
	ev.SetType("machine." + d.Function + ".decided")
	ev.SetSource("/functions/" + d.Function)
	if d.DryRun { // source and id are an event's identity, and who works beside it tells its decision under the same id
		ev.SetSource(ev.Source() + "/dry-run")
	}
	if d.Subject != "" {
		ev.SetSubject(d.Subject)
	}
	return send(ctx, w, ev, d)
}

// Answer answers a question of TypeSimulate by function with data, which is JSON, as a CloudEvent with 200.
func Answer(ctx context.Context, w http.ResponseWriter, id, function string, data json.RawMessage) error {
	ev := event.New()
	ev.SetID(id)
	ev.SetType(TypeSimulated)
	ev.SetSource("/functions/" + function)
	return send(ctx, w, ev, data)
}

// maxRefusal bounds what a refused question is told.
const maxRefusal = 4 << 10

// Refuse answers a question that cannot be answered with its error's status, and with its text where that is about the question
// alone: ErrMalformed, which says what of it is wrong. Whatever else went wrong may hold what nobody else shall read.
func Refuse(ctx context.Context, w http.ResponseWriter, err error) error {
	if !errors.Is(err, ErrMalformed) {
		return Reply(ctx, w, "", nil, err)
	}
	text := err.Error()
	http.Error(w, strings.ToValidUTF8(text[:min(len(text), maxRefusal)], ""), Status(err))
	return nil
}

func send(ctx context.Context, w http.ResponseWriter, ev event.Event, data any) error {
	if err := ev.SetData(event.ApplicationJSON, data); err != nil {
		return err
	}
	return cehttp.WriteResponseWriter(ctx, binding.ToMessage(&ev), http.StatusOK, w)
}
