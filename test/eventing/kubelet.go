// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replicasAnnotation is written by install/no-pods.yaml.
const replicasAnnotation = "test.machine.openshift.io/replicas"

// syncPeriod is how late a change of a Deployment may reach its process.
const syncPeriod = 500 * time.Millisecond

// kubelet runs each of Knative's Deployments as one process: the program that the image names, with the container's environment, as the
// Deployment's ServiceAccount.
type kubelet struct {
	cluster    *cluster
	supervisor *supervisor
	kubeconfig string
	programs   string              // folder of the programs
	dir        string              // where kubeconfigs are written
	common     []string            // environment of every process
	listen     map[string]string   // loopback address by Deployment, for the container's port 8080
	args       map[string][]string // by program

	running map[string]running
}

type running struct {
	env  []string
	stop func()
}

// sync runs until the context ends.
func (k *kubelet) sync(ctx context.Context) {
	k.running = map[string]running{}
	for ctx.Err() == nil {
		if err := k.syncOnce(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("deployments not synced", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(syncPeriod):
		}
	}
}

func (k *kubelet) syncOnce(ctx context.Context) error {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	list, err := k.cluster.dynamic.Resource(deployments).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for i := range list.Items {
		d := &list.Items[i]
		if d.GetAnnotations()[replicasAnnotation] == "" {
			continue
		}
		wanted[d.GetName()] = true
		if err := k.run(ctx, d); err != nil {
			return fmt.Errorf("%s: %w", describe(d), err)
		}
	}
	for _, name := range slices.Collect(maps.Keys(k.running)) {
		if !wanted[name] {
			k.running[name].stop()
			delete(k.running, name)
		}
	}
	return nil
}

// pod is what a process needs of a pod template.
type pod struct {
	ServiceAccountName string      `json:"serviceAccountName"`
	Containers         []container `json:"containers"`
}

type container struct {
	Image string     `json:"image"`
	Env   []variable `json:"env"`
}

type variable struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	ValueFrom struct {
		FieldRef struct {
			FieldPath string `json:"fieldPath"`
		} `json:"fieldRef"`
	} `json:"valueFrom"`
}

func (k *kubelet) run(ctx context.Context, d *unstructured.Unstructured) error {
	var p pod
	spec, _, err := unstructured.NestedMap(d.Object, "spec", "template", "spec")
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &p); err != nil {
		return err
	}
	path := filepath.Join(k.programs, program(p.Containers[0].Image))
	if !isFile(path) {
		return nil // the dispatcher, which runs with the controllers
	}
	env := environment(d, p.Containers[0].Env)
	if now, ok := k.running[d.GetName()]; ok {
		if slices.Equal(now.env, env) {
			return nil
		}
		now.stop()
	}
	config, err := k.impersonate(d.GetNamespace(), p.ServiceAccountName)
	if err != nil {
		return err
	}
	all := slices.Concat(k.common, env, []string{"KUBECONFIG=" + config})
	if address := k.listen[d.GetName()]; address != "" {
		all = append(all, "LISTEN_8080="+address)
	}
	stop := k.supervisor.start(ctx, process{name: d.GetName(), path: path, args: k.args[filepath.Base(path)], env: all})
	k.running[d.GetName()] = running{env: env, stop: stop}
	slog.Info("process started", "deployment", d.GetName())
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// environment is the container's, with the downward API filled in.
func environment(d *unstructured.Unstructured, variables []variable) []string {
	var env []string
	for _, v := range variables {
		value := v.Value
		switch v.ValueFrom.FieldRef.FieldPath {
		case "metadata.namespace":
			value = d.GetNamespace()
		case "metadata.name":
			value = d.GetName() + "-0"
		}
		env = append(env, v.Name+"="+value)
	}
	return env
}

// impersonate writes a kubeconfig with which a process has the rights of the ServiceAccount and no more.
func (k *kubelet) impersonate(ns, account string) (string, error) {
	config, err := clientcmd.LoadFromFile(k.kubeconfig)
	if err != nil {
		return "", err
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = fmt.Sprintf("system:serviceaccount:%s:%s", ns, account)
	}
	file := filepath.Join(k.dir, account+".kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}
