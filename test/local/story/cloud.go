// SPDX-License-Identifier: Apache-2.0

package story

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// broken returns the object file of the set whose network does not exist (S22).
func (s *Story) broken() string {
	switch s.Cloud {
	case "":
		return s.object("broken.yaml")
	case "openstack":
		return s.sample("openstack/cluster-a389-fmxsv-worker.yaml")
	}
	return s.object(s.Cloud + "/broken.yaml")
}

// controller is who tells of instances (S23).
func (s *Story) controller() string {
	if s.Cloud == "" {
		return "kubemark_controller"
	}
	return s.Cloud + "_controller"
}

// showSet shows a command on a file with a MachineSet, in which the samples' vCenter is replaced by the one that runs here.
func (s *Story) showSet(verb, path string) error {
	if s.Cloud != "vsphere" {
		return s.show(verb, "-f", path)
	}
	host, err := s.ask("get secret vsphere-cloud-credentials" + inNamespace + " -o jsonpath={.metadata.annotations.server}")
	if err != nil {
		return fmt.Errorf("no vCenter is known: %w", err)
	}
	if host == "" {
		return errors.New("no vCenter is known: the Secret names none")
	}
	return s.showFilled(verb, path, "vcenter.example.com", host)
}

// showFilled shows a command on a copy of an object file in which words are replaced, given in pairs.
func (s *Story) showFilled(verb, path string, words ...string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "story-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder of this command only
	filled := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(filled, []byte(strings.NewReplacer(words...).Replace(string(text))), 0o600); err != nil {
		return err
	}
	return s.show(verb, "-f", filled)
}
