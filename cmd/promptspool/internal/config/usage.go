package config

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// UsageError is a command line that cannot mean anything. The process exits with code 2.
type UsageError struct {
	command string // in full, with a blank after it; empty for promptspool itself
	message string
}

// Error returns the message without the command.
func (e UsageError) Error() string { return e.message }

// Help returns the command line that shows how the command is used.
func (e UsageError) Help() string { return "promptspool " + e.command + "--help" }

// Usagef returns a usage error of the command that runs.
func Usagef(c *cli.Context, format string, args ...any) error {
	e := UsageError{message: fmt.Sprintf(format, args...)}
	if command := CommandName(c); command != "" {
		e.command = command + " "
	}
	return e
}

// CommandName returns the command that runs, in full ("keys create"); "" for promptspool itself.
func CommandName(c *cli.Context) string {
	_, command, _ := strings.Cut(c.Command.HelpName, " ")
	return command
}
