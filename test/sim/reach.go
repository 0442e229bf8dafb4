// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"net/http"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

// dear is what a call does that few calls do, and that costs most where it goes wrong. Most calls are reads: a schedule that strikes
// all calls alike hardly ever strikes one of these.
type dear uint8

const (
	common  dear = iota
	creates      // an instance
	removes      // an instance
	claims       // a Machine, before its instance is made
	frees        // a Machine, whose finalizer goes
	numDear
)

var dearNames = [...]string{creates: "creates", removes: "removes", claims: "claims", frees: "frees"}

// fate is what can become of such a call.
type fate uint8

const (
	fared   fate = iota // well
	refused             // an error, without effect
	unheard             // the effect, but no answer
	ended               // its process, before it or after
	held                // until everything else is quiet
	numFate
)

var fateNames = [...]string{"made", "refused", "unheard", "killed", "held"}

var fates = [numVerdicts]fate{
	fails: refused, throttled: refused, exhausted: refused, proxied: refused,
	lost: unheard, cut: unheard,
	dies: ended, diesAfter: ended,
}

// reach counts what became of such calls while something could.
type reach [numDear][numFate]int

// struck is how many calls that make or remove instances something became of.
func (r *reach) struck() (n int) {
	return r.struckOf(creates) + r.struckOf(removes)
}

// struckOf is how many of one kind.
func (r *reach) struckOf(of dear) (n int) {
	for _, k := range r[of][refused:] {
		n += k
	}
	return n
}

// calls is how many there were.
func (r *reach) calls(of dear) (n int) {
	for _, k := range r[of] {
		n += k
	}
	return n
}

// dearOf says what a write does.
func dearOf(a plan.Action) dear {
	u, is := a.(plan.Update)
	if !is {
		return common
	}
	before, was := u.Old.(*machine.Machine)
	after, is := u.New.(*machine.Machine)
	switch {
	case !was || !is:
	case machine.HasFinalizer(before) && !machine.HasFinalizer(after):
		return frees
	case before.Annotations[machine.AnnotationIntent] != after.Annotations[machine.AnnotationIntent]:
		return claims
	}
	return common
}

// dearCall says what a call to a cloud does.
func dearCall(op cloud.Op) dear {
	switch op { //nolint:exhaustive // the others make and remove nothing
	case cloud.OpCreate:
		return creates
	case cloud.OpDelete:
		return removes
	}
	return common
}

// dearRequest says what a request to a host does.
func dearRequest(method string, body []byte) dear {
	switch {
	case method != http.MethodPatch:
	case bytes.Contains(body, []byte(`"consumerRef":{`)):
		return creates
	case bytes.Contains(body, []byte(`"consumerRef":null`)), bytes.Contains(body, []byte(`"image":null`)):
		return removes
	}
	return common
}
