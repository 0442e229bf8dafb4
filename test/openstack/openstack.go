// SPDX-License-Identifier: Apache-2.0

// Package openstack runs a real OpenStack on this machine, and makes in it what an administrator makes for Machines.
package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const (
	// Variable names the clouds.yaml of an OpenStack that runs already; tests are skipped without it.
	Variable = "OPENSTACK_CLOUDS"
	// Project is the one that the samples' Machines are made in, and its entry in clouds.yaml.
	Project = "openstack"
)

// OpenStack is one that runs.
type OpenStack struct {
	Clouds []byte // clouds.yaml: an entry for the administrator and one for each project

	folder string // of the scripts that stop it, or empty if it was not started here
}

// Start installs OpenStack if that was never done, which needs root, and starts it: 40 s, the first time minutes. If
// [Variable] is set it returns that one instead. Either has what config/samples/openstack names.
func Start(ctx context.Context, root string, progress io.Writer) (*OpenStack, error) {
	o, path := &OpenStack{}, os.Getenv(Variable)
	if path == "" {
		o.folder = filepath.Join(root, "test", "openstack")
		for _, script := range []string{"install.sh", "up.sh"} {
			if err := o.run(ctx, progress, script); err != nil {
				return nil, fmt.Errorf("start OpenStack: %w", err)
			}
		}
		path = filepath.Join(root, "build", "openstack", "clouds.yaml")
	}
	var err error
	if o.Clouds, err = os.ReadFile(path); err == nil {
		err = o.furnish(ctx)
	}
	if err != nil {
		o.Stop()
		return nil, fmt.Errorf("prepare OpenStack: %w", err)
	}
	return o, nil
}

// Stop ends what Start started; what is in it is thrown away at the next start.
func (o *OpenStack) Stop() {
	if o.folder != "" {
		_ = o.run(context.Background(), io.Discard, "up.sh", "down") // it says nothing, and has no other end
	}
}

func (o *OpenStack) run(ctx context.Context, progress io.Writer, script string, args ...string) error {
	c := exec.CommandContext(ctx, filepath.Join(o.folder, script), args...)
	c.Stdout, c.Stderr = progress, progress
	return c.Run()
}

// Credentials returns a clouds.yaml with the entry of [Project] alone.
func (o *OpenStack) Credentials() ([]byte, error) {
	var file struct {
		Clouds map[string]json.RawMessage `json:"clouds"`
	}
	if err := yaml.Unmarshal(o.Clouds, &file); err != nil {
		return nil, err
	}
	return yaml.Marshal(map[string]any{"clouds": map[string]any{Project: file.Clouds[Project]}})
}

// furnish makes what config/samples/openstack names.
func (o *OpenStack) furnish(ctx context.Context) error {
	admin, err := Login(ctx, o.Clouds, "admin")
	if err != nil {
		return err
	}
	project, err := Login(ctx, o.Clouds, Project)
	if err != nil {
		return err
	}
	for name, memory := range map[string]int{"4c12g30d": 12, "4c16g30d": 16} {
		if err := admin.HaveFlavor(ctx, name, 4, memory, 30); err != nil {
			return err
		}
	}
	for _, image := range []string{"rhcos-ocp43", "cluster-a389-fmxsv-rhcos"} {
		if err := admin.HaveImage(ctx, image); err != nil {
			return err
		}
	}
	for _, group := range []string{"a389-worker_sg", "cluster-a389-fmxsv-worker"} {
		if _, err := project.HaveGroup(ctx, group); err != nil {
			return err
		}
	}
	_, _, err = project.HaveNetwork(ctx, "a389-ocp", "a389-ocp-subnet", "192.168.0.0/16")
	return err
}
