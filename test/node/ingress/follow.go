// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"knative.dev/networking/pkg/apis/networking"
	"knative.dev/networking/pkg/apis/networking/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// class is what config-network names as ingress-class.
const class = "machine-functions-test"

var resource = v1alpha1.SchemeGroupVersion.WithResource("ingresses")

// follow keeps routes as the KIngress objects are and tells the objects that they are served, until ctx ends. It returns
// after the first look.
func follow(ctx context.Context, client dynamic.Interface, self string, r *routes) error {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, time.Minute)
	informer := factory.ForResource(resource).Informer()
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // somebody told already
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	look := func() {
		ours := read(informer.GetStore().List())
		r.replace(ours) // before anybody is told that it is so
		for _, ingress := range ours {
			if err := ready(ctx, client, self, ingress); err != nil {
				slog.Warn("status was not written", "ingress", ingress.Namespace+"/"+ingress.Name, "error", err)
				time.AfterFunc(time.Second, tell)
			}
		}
	}
	look()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				look()
			}
		}
	}()
	return nil
}

// read returns the objects of our class that are not going away.
func read(all []any) (ours []*v1alpha1.Ingress) {
	for _, o := range all {
		u, ok := o.(*unstructured.Unstructured)
		if !ok || u.GetAnnotations()[networking.IngressClassAnnotationKey] != class || u.GetDeletionTimestamp() != nil {
			continue
		}
		var ingress v1alpha1.Ingress
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &ingress); err != nil {
			slog.Warn("ingress is not understood", "ingress", u.GetNamespace()+"/"+u.GetName(), "error", err)
			continue
		}
		ours = append(ours, &ingress)
	}
	return ours
}

// ready writes into an object's status that its present generation is served here, unless it says so.
func ready(ctx context.Context, client dynamic.Interface, self string, ingress *v1alpha1.Ingress) error {
	if ingress.IsReady() && ingress.Status.ObservedGeneration == ingress.Generation {
		return nil
	}
	here := []v1alpha1.LoadBalancerIngressStatus{{DomainInternal: self}}
	ingress.Status.InitializeConditions()
	ingress.Status.MarkNetworkConfigured()
	ingress.Status.MarkLoadBalancerReady(here, here)
	ingress.Status.ObservedGeneration = ingress.Generation
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": ingress.UID}, "status": ingress.Status})
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	_, err = client.Resource(resource).Namespace(ingress.Namespace).Patch(ctx, ingress.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
