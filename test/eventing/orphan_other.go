// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "syscall"

// dieWithParent has no equivalent here: children outlive a parent that is killed with SIGKILL.
func dieWithParent() *syscall.SysProcAttr { return nil }
