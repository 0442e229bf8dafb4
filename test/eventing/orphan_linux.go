// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// dieWithParent lets the kernel kill a child whose parent was killed.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
