//go:build unix

package machine

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// KillWhole lets a command's context end what the command has started as well. A signal of the terminal to
// this process no longer reaches it.
func KillWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
}
