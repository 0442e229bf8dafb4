// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMarksRememberPods(t *testing.T) {
	t.Parallel()
	pod := func(name, uid string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Namespace, p.Name, p.UID = "ns", name, types.UID(uid)
		return p
	}
	marks := Marks{}
	for i := range 3 {
		marks.Add(pod(fmt.Sprint("p", i), "a"))
	}
	read := Marks{}
	read.AddText(marks.String())
	for _, text := range []string{"no such text", "AA", marks.String()[:15]} { // one that was cut off is none either
		read.AddText(text)
	}
	if got, want := read.String(), marks.String(); got != want || len(read) != 3 {
		t.Errorf("read %q, wrote %q", got, want)
	}
	if !read.Has(pod("p1", "a")) || read.Has(pod("p1", "made anew")) || read.Has(pod("p3", "a")) || read.Has(pod("p", "1a")) {
		t.Error("other Pods than those that were added")
	}
}
