// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	decode "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// installFS holds what stands in for the parts of a cluster that do not run here.
//
//go:embed install/*.yaml
var installFS embed.FS

// readFiles returns the objects of the files in order.
func readFiles(dir fs.FS, names []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, name := range names {
		content, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		decoder := decode.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			o := &unstructured.Unstructured{}
			err := decoder.Decode(&o.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if len(o.Object) > 0 { // a document of comments
				objects = append(objects, o)
			}
		}
	}
	return objects, nil
}

// readAll returns the objects of every YAML file of the folder, by file name.
func readAll(dir fs.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return readFiles(dir, names)
}

// readKustomization returns what `kubectl apply -k` would apply, for a kustomization that only lists its files; any other is refused.
func readKustomization(dir fs.FS) ([]*unstructured.Unstructured, error) {
	content, err := fs.ReadFile(dir, "kustomization.yaml")
	if err != nil {
		return nil, err
	}
	var k struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Resources  []string `json:"resources"`
	}
	if err := yaml.UnmarshalStrict(content, &k); err != nil {
		return nil, fmt.Errorf("kustomization.yaml: %w", err)
	}
	return readFiles(dir, k.Resources)
}

// ofKind returns the objects of that kind.
func ofKind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

// notOfKind returns the others.
func notOfKind(objects []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return slices.Contains(kinds, o.GetKind()) })
}

// knative returns the objects that Knative reconciles.
func knative(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return !strings.HasSuffix(o.GroupVersionKind().Group, ".knative.dev")
	})
}

// program returns the file name of the program in an image of Knative's manifests, which name it by its import path.
func program(image string) string {
	importPath, ok := strings.CutPrefix(image, "ko://knative.dev/eventing/cmd/")
	if !ok {
		return ""
	}
	return path.Base(importPath)
}

// functionsIn returns the names of the Knative Services that the value, part of a manifest, refers to.
func functionsIn(value any) []string {
	var names []string
	switch v := value.(type) {
	case map[string]any:
		if v["apiVersion"] == "serving.knative.dev/v1" && v["kind"] == "Service" {
			return []string{fmt.Sprint(v["name"])}
		}
		for _, field := range v {
			names = append(names, functionsIn(field)...)
		}
	case []any:
		for _, item := range v {
			names = append(names, functionsIn(item)...)
		}
	}
	return names
}

// functionService is a Knative Service whose pods are processes that others run: only its address matters.
func functionService(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "serving.knative.dev/v1",
		"kind":       "Service",
		"metadata":   map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": name, "image": "process"}},
		}}},
	}}
}

// functionStatus is the status of that Service as Serving would write it.
func functionStatus(name string) *unstructured.Unstructured {
	url := fmt.Sprintf("http://%s.%s.svc.cluster.local", name, namespace)
	o := functionService(name)
	delete(o.Object, "spec")
	o.Object["status"] = map[string]any{
		"url":     url,
		"address": map[string]any{"url": url},
		"conditions": []any{
			map[string]any{"type": "Ready", "status": "True"},
		},
	}
	return o
}
