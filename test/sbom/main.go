// SPDX-License-Identifier: Apache-2.0

// Command sbom writes the bill of materials of the product: every module that its functions are built of, in SPDX 2.3.
//
//	go run ./test/sbom >build/sbom.spdx.json
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Every function's process is built of the product, of the runtime that kn func links around it, and of what Go itself has.
const (
	product = "github.com/machine-functions/machine-functions"
	server  = "knative.dev/func-go/http"
	library = "stdlib" // as whoever looks for vulnerabilities calls it
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	parts, err := modules(product, server)
	if err != nil {
		return err
	}
	version, err := exec.Command("go", "env", "GOVERSION").Output() //nolint:noctx // it ends by itself
	if err != nil {
		return fmt.Errorf("which Go builds: %w", err)
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(version)), "go"), " ")
	parts = append(parts, module{Path: library, Version: number})
	commit, made := committed()
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(bill(parts, commit, made))
}

// module is what go list tells of one.
type module struct {
	Path, Version, Sum string
	Main               bool
}

// modules returns the modules that the packages behind some packages come from on Linux, each once, sorted by path.
func modules(of ...string) ([]module, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, of...)...) //nolint:noctx,gosec // it ends by itself; they are ours
	cmd.Env = append(os.Environ(), "GOOS=linux")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list %v: %w", of, err)
	}
	var all []module
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct{ Module *module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list %v: %w", of, err)
		}
		if p.Module != nil && !slices.Contains(all, *p.Module) { // else of the standard library
			all = append(all, *p.Module)
		}
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// committed returns the commit that is checked out, and its time: the same sources have the same bill.
func committed() (commit string, made time.Time) {
	text, err := exec.Command("git", "log", "-1", "--format=%H %ct").Output() //nolint:noctx // it ends by itself
	if err != nil {
		return "unknown", time.Unix(0, 0).UTC()
	}
	var seconds int64
	if _, err := fmt.Sscan(string(text), &commit, &seconds); err != nil {
		return "unknown", time.Unix(0, 0).UTC()
	}
	return commit, time.Unix(seconds, 0).UTC()
}

// The part of SPDX 2.3 that is written (https://spdx.github.io/spdx-spec/v2.3/).
type (
	document struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Created       creation       `json:"creationInfo"`
		Packages      []part         `json:"packages"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	part struct {
		ID        string      `json:"SPDXID"`
		Name      string      `json:"name"`
		Version   string      `json:"versionInfo"`
		From      string      `json:"downloadLocation"`
		Analyzed  bool        `json:"filesAnalyzed"`
		Concluded string      `json:"licenseConcluded"`
		Declared  string      `json:"licenseDeclared"`
		Copyright string      `json:"copyrightText"`
		Comment   string      `json:"comment,omitempty"` // the line of go.sum: SPDX has no word for that hash
		Refs      []reference `json:"externalRefs"`
	}
	reference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Is   string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

var unfit = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func bill(parts []module, commit string, made time.Time) document {
	const unknown, root = "NOASSERTION", "SPDXRef-DOCUMENT"
	d := document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: root, Name: product, Namespace: "https://" + product + "/sbom/" + commit,
		Created: creation{made.Format(time.RFC3339), []string{"Tool: " + product + "/test/sbom"}},
	}
	self := ""
	for _, m := range parts {
		p := part{
			ID: "SPDXRef-" + unfit.ReplaceAllString(m.Path, "-"), Name: m.Path, Version: m.Version, From: "https://proxy.golang.org/" + m.Path + "/@v/" + m.Version + ".zip",
			Concluded: unknown, Declared: unknown, Copyright: unknown,
			Refs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}},
		}
		if m.Sum != "" {
			p.Comment = "go.sum: " + m.Sum
		}
		if m.Path == library {
			p.From, p.Declared = "https://go.dev/dl/go"+m.Version+".src.tar.gz", "BSD-3-Clause"
		}
		if m.Main {
			p.Version, p.From, p.Declared, self = commit, "git+https://"+m.Path+"@"+commit, "Apache-2.0", p.ID
			p.Refs[0].Locator = "pkg:golang/" + m.Path + "@" + commit
		}
		d.Packages = append(d.Packages, p)
	}
	d.Relationships = append(d.Relationships, relationship{root, "DESCRIBES", self})
	for _, p := range d.Packages {
		if p.ID != self {
			d.Relationships = append(d.Relationships, relationship{self, "DEPENDS_ON", p.ID})
		}
	}
	return d
}
