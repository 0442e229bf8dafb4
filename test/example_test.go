// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// driver hands the example an event as func's middleware does; the library of CloudEvents, which is no part of Python, is as
// small as the example needs it.
const driver = `
import asyncio, os, sys, types
class CloudEvent:
    def __init__(self, attributes, data): self.attributes, self.data = attributes, data
    def get_id(self): return self.attributes["id"]
    def get_data(self): return self.data
for name in ("cloudevents", "cloudevents.core", "cloudevents.core.v1", "cloudevents.core.v1.event"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["cloudevents.core.v1.event"].CloudEvent = CloudEvent
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import func
sent = []
async def send(event): sent.append(event)
function = func.new()
function.start(dict(os.environ))
for data in (sys.argv[2], sys.argv[2].encode(), __import__("json").loads(sys.argv[2])):
    asyncio.run(function.handle({"event": CloudEvent({"id": "7"}, data)}, None, send))
print([e.get_id() for e in sent], {e.attributes["type"] for e in sent})
`

// The function in another language that docs/shadow.md shows tells what a decision says, in whatever form its data comes, and
// answers; its Trigger subscribes it to events that functions reply with, and to none that wakes anybody.
func TestExampleInAnotherLanguage(t *testing.T) {
	t.Parallel()
	const folder = "../docs/examples/tell-decisions"
	var trigger struct {
		Spec struct {
			Broker     string
			Filters    []struct{ Exact struct{ Type string } }
			Subscriber struct{ Ref struct{ Name string } }
		}
	}
	if err := yaml.Unmarshal([]byte(text(t, folder+"/triggers.yaml")), &trigger); err != nil {
		t.Fatal(err)
	}
	if s := trigger.Spec; s.Broker != "machines" || len(s.Filters) != 1 || s.Filters[0].Exact.Type != "machine.evaluate-autoscale.decided" || s.Subscriber.Ref.Name != "tell-decisions" {
		t.Errorf("the Trigger says %+v", s)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	told := make(chan string, 3)
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message struct{ Text string }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &message); err != nil {
			message.Text = err.Error()
		}
		told <- message.Text
	}))
	defer chat.Close()
	const data = `{"function": "evaluate-autoscale", "subject": "machineset/openshift-machine-api/worker", "dryRun": true, "plan": "1 to 3"}`
	got := run(t, ".", []string{"CHAT_URL=" + chat.URL, "PYTHONPATH=", "no_proxy=*"}, python, "-c", driver, folder+"/function", data)
	for range 3 {
		if text := <-told; text != "evaluate-autoscale would have decided for machineset/openshift-machine-api/worker: 1 to 3" {
			t.Errorf("told %q", text)
		}
	}
	if !strings.Contains(got, "['7.told', '7.told', '7.told'] {'example.decision.told'}") {
		t.Errorf("answered %s", got)
	}
}
