// SPDX-License-Identifier: Apache-2.0

package story

import (
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

// examples are what the samples of clouds that run here name instead, and the Secrets that say where they are.
var examples = map[string]struct{ named, secret string }{
	"libvirt": {"qemu+tls://host.example.com/system", "libvirt-credentials"},
	"vsphere": {"vcenter.example.com", "vsphere-cloud-credentials"},
}

// showSet shows a command on a file with a MachineSet, in which the samples' vCenter or libvirt daemon is replaced by the one that runs
// here.
func (s *Story) showSet(verb, path string) error {
	example, ok := examples[s.Cloud]
	if !ok {
		return s.show(verb, "-f", path)
	}
	server, err := s.ask("get secret " + example.secret + inNamespace + " -o jsonpath={.metadata.annotations.server}")
	if err != nil {
		return fmt.Errorf("nobody knows where the cloud is: %w", err)
	}
	if server == "" {
		return fmt.Errorf("nobody knows where the cloud is: Secret %s names no server", example.secret)
	}
	return s.showFilled(verb, path, example.named, server)
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
