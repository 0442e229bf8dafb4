// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

// Complete returns what the API server makes of the spec of a template once a Pod is made from it: who has limits and does not
// say what is asked for asks for as much, and on the network of its host a port is the host's. It completes Pods only, not what
// they are made from. The spec is not modified.
func Complete(spec corev1.PodSpec) corev1.PodSpec {
	spec.Containers, spec.InitContainers = complete(spec.Containers), complete(spec.InitContainers)
	if spec.HostNetwork {
		spec.Containers, spec.InitContainers = onHost(spec.Containers), onHost(spec.InitContainers)
	}
	if spec.Resources == nil || len(spec.Resources.Limits) == 0 {
		return spec
	}
	asked := helpers.AggregateContainerRequests(&corev1.Pod{Spec: spec}, helpers.PodResourcesOptions{})
	maps.Copy(asked, spec.Resources.Requests)
	resources := *spec.Resources
	resources.Requests = maps.Clone(resources.Requests)
	for name, most := range resources.Limits {
		if _, said := asked[name]; said {
			continue
		}
		if resources.Requests == nil {
			resources.Requests = corev1.ResourceList{}
		}
		resources.Requests[name] = most
	}
	spec.Resources = &resources
	return spec
}

// onHost gives every port of containers the same one of the host, unless it has one.
func onHost(all []corev1.Container) []corev1.Container {
	all = slices.Clone(all)
	for i := range all {
		all[i].Ports = slices.Clone(all[i].Ports)
		for k := range all[i].Ports {
			p := &all[i].Ports[k]
			p.HostPort = cmp.Or(p.HostPort, p.ContainerPort)
		}
	}
	return all
}

func complete(all []corev1.Container) []corev1.Container {
	short := func(c corev1.Container) bool {
		for name := range c.Resources.Limits {
			if _, said := c.Resources.Requests[name]; !said {
				return true
			}
		}
		return false
	}
	if !slices.ContainsFunc(all, short) {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		if r := &all[i].Resources; short(all[i]) {
			asks := maps.Clone(r.Limits)
			maps.Copy(asks, r.Requests)
			r.Requests = asks
		}
	}
	return all
}
