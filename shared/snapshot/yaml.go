// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// Decode reads kubectl YAML: documents separated by "---", or a List. A field that the kind does not know, a kind
// that no function knows, and a wrong apiVersion are errors; of foreign kinds everything is read.
func Decode(text []byte) ([]plan.Object, error) {
	var all []plan.Object
	for i, doc := range documents(text) {
		o, err := decode(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		all = append(all, o)
	}
	return all, nil
}

// Encode writes o as kubectl YAML.
func Encode(o plan.Object) ([]byte, error) {
	r, ok := plan.ResourceOf(plan.KindOf(o))
	if !ok {
		return nil, fmt.Errorf("encode %T: unknown kind", o)
	}
	o, _ = o.DeepCopyObject().(plan.Object)
	o.GetObjectKind().SetGroupVersionKind(r.GVK())
	return yaml.Marshal(o)
}

func documents(text []byte) [][]byte {
	var docs [][]byte
	for d := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---")) {
		if len(bytes.TrimSpace(d)) > 0 {
			docs = append(docs, d)
		}
	}
	return docs
}

func decode(doc []byte) (plan.Object, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return nil, err
	}
	kind, ok := plan.KindFor(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
	if !ok {
		return nil, fmt.Errorf("%s %s is not a kind that functions know", head.APIVersion, head.Kind)
	}
	r, _ := plan.ResourceOf(kind)
	o := r.New()
	if err := yaml.UnmarshalStrict(doc, o); err != nil {
		return nil, fmt.Errorf("%s: %w", head.Kind, err)
	}
	return o, nil
}
