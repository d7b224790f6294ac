//go:build unix

package machine

import (
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// descriptors returns how many descriptors the process may have, and how many it has.
func descriptors() (limit, open int, ok bool) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, 0, false
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		entries, err = os.ReadDir("/dev/fd") // macOS
	}
	if err != nil {
		return 0, 0, false
	}

	return int(min(l.Cur, 1<<30)), len(entries), true
}

// KillWhole lets a command's context end what the command has started as well. A signal of the terminal to
// this process no longer reaches it.
func KillWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
}
