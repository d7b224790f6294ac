//go:build !linux

package postgrestest

import "syscall"

// resume stands for a signal that not every system has: only tests on Linux stop a process.
const resume = syscall.SIGQUIT

// process leaves a process to the user who starts it, which must not be root.
func (o *owner) process(syscall.Signal) *syscall.SysProcAttr { return nil }
