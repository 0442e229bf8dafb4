// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// recordScenario writes one decision as a scenario into the folder Record, which it makes if it is not there, so that what misbehaved can be replayed and kept as
// a test. A scenario holds whatever the objects hold; Secrets are never among them.
func (i *invocation) recordScenario(s snapshot.Snapshot, p plan.Plan, round int) {
	if i.Record == "" || p.Quiet() {
		return
	}
	name := fmt.Sprintf("%s-%s-%s-%d.txtar", i.Function.Name, s.Now.UTC().Format("20060102T150405Z"), i.id, round)
	text, err := scenario(s, p)
	if err == nil {
		err = os.MkdirAll(i.Record, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(i.Record, name), text, 0o600)
	}
	if err != nil {
		i.log.Warn("decision was not recorded", keyError, err)
	}
}

func scenario(s snapshot.Snapshot, p plan.Plan) ([]byte, error) {
	a := &txtar.Archive{Comment: []byte("Recorded; say here what must happen, with the reason.\n")}
	section := func(name string, text []byte) {
		if len(bytes.TrimSpace(text)) > 0 && string(text) != "{}\n" {
			a.Files = append(a.Files, txtar.File{Name: name, Data: text})
		}
	}
	section("now", []byte(s.Now.UTC().Format(time.RFC3339)+"\n"))
	if !s.Before.IsZero() {
		section("before", []byte(s.Before.UTC().Format(time.RFC3339)+"\n"))
	}
	if !slices.Equal(s.Served, []string{machine.Namespace}) {
		section("served", []byte(strings.Join(s.Served, " ")+"\n"))
	}
	if r := s.Request; !r.Scan() {
		name := r.Name
		if r.Namespace != "" {
			name = r.Namespace + "/" + name
		}
		section("request", []byte(r.Kind+" "+name+"\n"))
	}
	var cluster bytes.Buffer
	for o := range s.Objects() {
		text, err := snapshot.Encode(o)
		if err != nil {
			return nil, err
		}
		cluster.WriteString("---\n")
		cluster.Write(text)
	}
	section("cluster", cluster.Bytes())
	clouds, err := snapshot.EncodeClouds(byName(s))
	if err != nil {
		return nil, err
	}
	section("clouds", clouds)
	accounts, err := snapshot.EncodeAccounts(s.Accounts)
	if err != nil {
		return nil, err
	}
	section("accounts", accounts)
	outcomes, err := snapshot.EncodeOutcomes(s.Outcomes)
	if err != nil {
		return nil, err
	}
	section("outcomes", outcomes)
	section("plan", []byte(p.String()))
	return txtar.Format(a), nil
}

// byName returns the answers of clouds by the name of the object that they are about, as scenarios have them.
func byName(s snapshot.Snapshot) map[string]snapshot.Cloud {
	named := map[string]snapshot.Cloud{}
	for uid, sub := range subjectsOf(s) {
		if c, ok := s.Clouds[uid]; ok {
			named[sub.object.GetName()] = c
		}
	}
	return named
}
