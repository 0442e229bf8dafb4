// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// object is any Kubernetes object.
type object = map[string]any

// notHere are parts of Knative that functions do not need: more replicas, and sinks of other kinds.
var notHere = []string{"HorizontalPodAutoscaler/*", "PodDisruptionBudget/*", "Deployment/job-sink", "StatefulSet/request-reply"}

// settingsOf are lines that config maps get beside what they come with.
var settingsOf = map[string]map[string]string{
	"config-network":    {"ingress-class": "machine-functions-test"},
	"config-domain":     {"svc.cluster.local": ""},
	"config-deployment": {"registries-skipping-tag-resolving": registryHost},
	// Scaling to zero is watched; nobody should wait a minute and a half for it.
	"config-autoscaler": {"stable-window": "20s", "scale-to-zero-grace-period": "10s"},
}

var imageReference = regexp.MustCompile(`ko://[-\w./]+`)

// render reads manifests, of files and of all files in folders, in order, and makes them fit this node: images are those
// that were pushed, requests for CPU are small, and what is not needed is left out.
func render(images map[string]string, paths ...string) ([]byte, error) {
	var out bytes.Buffer
	for _, path := range paths {
		files, err := yamlFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			for _, document := range regexp.MustCompile(`(?m)^---.*$`).Split(string(text), -1) {
				if err := renderOne(&out, images, document); err != nil {
					return nil, fmt.Errorf("%s: %w", file, err)
				}
			}
		}
	}
	return out.Bytes(), nil
}

func yamlFiles(path string) (files []string, err error) {
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".yaml") {
			files = append(files, p)
		}
		return err
	})
	slices.Sort(files)
	return files, err
}

func renderOne(out *bytes.Buffer, images map[string]string, document string) error {
	document = imageReference.ReplaceAllStringFunc(document, func(reference string) string {
		if image, ok := images[strings.TrimPrefix(reference, "ko://")]; ok {
			return image
		}
		return registryHost + "/not-here" // of what is left out
	})
	var o object
	if err := yaml.Unmarshal([]byte(document), &o); err != nil || len(o) == 0 {
		return err
	}
	kind, _ := o["kind"].(string)
	metadata, _ := o["metadata"].(object)
	name, _ := metadata["name"].(string)
	if slices.Contains(notHere, kind+"/*") || slices.Contains(notHere, kind+"/"+name) {
		return nil
	}
	if kind == "ConfigMap" {
		data, _ := o["data"].(object)
		if data == nil {
			data = object{}
		}
		for key, value := range settingsOf[name] {
			data[key] = value
		}
		o["data"] = data
	}
	if kind == "Deployment" {
		smallRequests(o)
	}
	text, err := yaml.Marshal(o)
	out.WriteString("---\n")
	out.Write(text)
	return err
}

// smallRequests lowers every request for CPU, however deep it lies: all of Knative asks for more than two cores.
func smallRequests(value any) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			smallRequests(each)
		}
	case object:
		if requests, ok := v["requests"].(object); ok && requests["cpu"] != nil {
			requests["cpu"] = "10m"
		}
		for _, each := range v {
			smallRequests(each)
		}
	}
}
