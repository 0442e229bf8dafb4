// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Attach returns the control plane that somebody else runs in a folder, and will stop: Stop does nothing. Nodes that the
// selector does not choose are left out where kubectl is asked for all; empty chooses every Node.
func Attach(binary, dir, nodes string) (*ControlPlane, error) {
	server, err := os.ReadFile(filepath.Join(dir, "ready"))
	if err != nil {
		return nil, fmt.Errorf("attach to control plane: %w", err)
	}
	c := &ControlPlane{
		Binary: binary, Dir: dir, Server: strings.TrimSpace(string(server)), Kubeconfig: filepath.Join(dir, "kubeconfig"),
		Log: filepath.Join(dir, "control-plane.log"), done: make(chan struct{}), nodes: nodes,
	}
	c.stop.Do(func() {})
	return c, nil
}

// choosing adds the selector to a command of kubectl that is about all Nodes.
func choosing(selector string, args []string) []string {
	var words []string // verb and what it is about
	value, labels := false, -1
	for i, arg := range args {
		switch {
		case value:
			value = false
		case arg == "-l" || arg == "--selector":
			value, labels = true, i+1
		case arg == "-n" || arg == "-o" || arg == "-p" || arg == "-L" || arg == "-f" || arg == "-k" || arg == "--as":
			value = true
		case strings.HasPrefix(arg, "--field-selector"):
			return args // chooses by itself
		case !strings.HasPrefix(arg, "-"):
			words = append(words, arg)
		}
	}
	if selector == "" || len(words) != 2 || !slices.Contains([]string{"get", "delete", "label", "describe"}, words[0]) || !slices.Contains(strings.Split(words[1], ","), "nodes") {
		return args
	}
	args = slices.Clone(args)
	if labels > 0 {
		args[labels] += "," + selector
		return args
	}
	// kubectl takes either all or a selector.
	args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--all" })
	return append(args, "-l", selector)
}
