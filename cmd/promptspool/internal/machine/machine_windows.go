package machine

import "os/exec"

// descriptors reports false: the system bounds neither files nor connections.
func descriptors() (limit, open int, ok bool) { return 0, 0, false }

// KillWhole lets a command's context end what the command has started as well; here it ends the command.
func KillWhole(*exec.Cmd) {}
