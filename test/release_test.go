// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Media types of what func's host builder makes: an image for each platform, and the index of them.
const (
	typeImage = "application/vnd.oci.image.manifest.v1+json"
	typeIndex = "application/vnd.oci.image.index.v1+json"
)

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant,omitempty"`
}

type descriptor struct {
	MediaType string    `json:"mediaType"`
	Size      int       `json:"size"`
	Digest    string    `json:"digest"`
	Platform  *platform `json:"platform,omitempty"`
}

type imageIndex struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

// platforms are those that func builds for: amd64 comes first.
var platforms = []platform{{"amd64", "linux", ""}, {"arm64", "linux", ""}, {"arm", "linux", "v7"}}

// registry keeps manifests by tag and digest, as registries do: the digest is its own, of the bytes that it was given.
type registry struct {
	mu   sync.Mutex
	held map[string]manifest // by repository:reference
}

type manifest struct {
	body         []byte
	kind, digest string
}

func digestOf(text []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(text)) }

// ServeHTTP implements http.Handler: PUT, GET and HEAD of /v2/REPOSITORY/manifests/REFERENCE.
func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	repository, reference, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Method == http.MethodPut {
		body, _ := io.ReadAll(r.Body)
		m := manifest{body, r.Header.Get("Content-Type"), digestOf(body)}
		g.held[repository+":"+reference], g.held[repository+":"+m.digest] = m, m
		w.WriteHeader(http.StatusCreated)
		return
	}
	m, ok := g.held[repository+":"+reference]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Docker-Content-Digest", m.digest)
	w.Header().Set("Content-Type", m.kind)
	_, _ = w.Write(m.body) // who hung up does not want it
}

// funcBuild does what func build --push does: an OCI layout in the function root, whose index has the tag latest in the registry.
func funcBuild(args []string) error {
	if !slices.Equal(args[3:], []string{"--builder", "host", "--push"}) || args[0] != "build" || args[1] != "--path" {
		return fmt.Errorf("func %q", args)
	}
	root := args[2]
	host, folder, _ := strings.Cut(os.Getenv("FUNC_REGISTRY"), "/")
	repository := "http://" + host + path.Join("/v2", folder, filepath.Base(root), "manifests")
	index := imageIndex{SchemaVersion: 2, MediaType: typeIndex}
	for _, p := range platforms {
		image := fmt.Appendf(nil, "{\"schemaVersion\": 2, \"mediaType\": %q, \"config\": {\"digest\": %q}}\n", typeImage, digestOf([]byte(root+p.Architecture)))
		index.Manifests = append(index.Manifests, descriptor{typeImage, len(image), digestOf(image), &p})
		if err := put(repository+"/"+digestOf(image), typeImage, image); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	layout := filepath.Join(root, ".func", "build", "oci")
	if err := os.MkdirAll(layout, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(layout, "index.json"), text, 0o600); err != nil {
		return err
	}
	return put(repository+"/latest", typeIndex, text)
}

func put(url, kind string, body []byte) error {
	r, err := http.NewRequest(http.MethodPut, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", kind)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s: %s, %w", url, answer.Status, err)
	}
	return nil
}

// latest is the index that a registry has under the tag latest, and the digest that it tells.
func latest(t *testing.T, repository string) (index imageIndex, digest string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, repository+"/manifests/latest", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // only read
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != typeIndex {
		t.Fatalf("%s: %s, %s", r.URL, answer.Status, kind)
	}
	if err := json.NewDecoder(answer.Body).Decode(&index); err != nil {
		t.Fatal(err)
	}
	return index, answer.Header.Get("Docker-Content-Digest")
}

// A release names what the registry holds under the tag that was pushed: the index of all platforms, not the image of one of
// them, which no Node of another architecture could run.
func TestReleaseNamesIndexes(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&registry{held: map[string]manifest{}})
	t.Cleanup(server.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, host := checkout(t, "shared", "functions"), strings.TrimPrefix(server.URL, "http://")
	functions := []string{"link-node", "remediate"}
	out := run(t, root, []string{"PUSHES=1", "FUNC_CLI=" + self, "FUNC_REGISTRY=" + host + "/machine-functions"},
		"tools/func/deploy.sh", append([]string{"release"}, functions...)...)
	type image struct{ Name, NewName, Digest string }
	var got struct{ Images []image }
	if err := yaml.Unmarshal([]byte(text(t, filepath.Join(out, "kustomization.yaml"))), &got); err != nil {
		t.Fatal(err)
	}
	var want []image
	for _, name := range functions {
		index, digest := latest(t, server.URL+"/v2/machine-functions/"+name)
		if len(index.Manifests) != len(platforms) {
			t.Errorf("%s in the registry: %d images", name, len(index.Manifests))
		}
		want = append(want, image{"images.invalid/machine-functions/" + name, host + "/machine-functions/" + name, digest})
	}
	if diff := cmp.Diff(want, got.Images); diff != "" {
		t.Errorf("images of the release (-in the registry +named):\n%s", diff)
	}
}
