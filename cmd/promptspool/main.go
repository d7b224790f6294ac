// Command promptspool keeps a record of every call to a language model. It is one binary with two roles: a sidecar beside
// the app, which takes writes on localhost, answers once they are on disk and forwards them; and a server, which keeps
// the records, the templates and the keys. serve.go shows what each is made of.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

func main() {
	// The first signal asks for an orderly stop; the second, however soon it follows, ends the process at once.
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		second := <-signals
		signal.Reset()
		_ = syscall.Kill(os.Getpid(), second.(syscall.Signal))
	}()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is main with its surroundings as arguments. It returns the exit code: 0 done, 1 failed, 2 usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	app.Metadata[argsKey] = args
	err := app.RunContext(ctx, permute(app, args))
	if err == nil {
		return 0
	}
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "promptspool: %v\nSee `promptspool %s--help`.\n", usage, usage.command)
		return 2
	}
	var e *wire.Error
	if !errors.As(err, &e) {
		prefix := "promptspool: "
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(stderr, prefix+printable(line))
			prefix = ""
		}
		return 1
	}
	fmt.Fprintln(stderr, "promptspool:", printable(cmp.Or(e.Message, e.Error())))
	for _, f := range e.Untold() {
		fmt.Fprintf(stderr, "  %s %s\n", printable(f.Field), printable(f.Reason))
	}
	return 1
}

// newApp is the command table.
func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:           "promptspool",
		Usage:          "a durable record of every call to a language model",
		Writer:         stdout,
		ErrWriter:      stderr,
		Version:        version,
		Metadata:       map[string]any{},
		ExitErrHandler: func(*cli.Context, error) {}, // run does it
		// A tag may hold a comma.
		DisableSliceFlagSeparator: true,
		Commands: []*cli.Command{
			upCommand(), serverCommand(), sidecarCommand(),
			statusCommand(), keysCommand(), peopleCommand(), requestsCommand(), templatesCommand(), spoolCommand(),
			deadCommand(), archiveGroup(), backupCommand(), restoreBackupCommand(), configCommand(), docsCommand(), versionCommand(),
		},
	}
	app.Action = noSuchCommand
	app.OnUsageError = onUsageError
	for _, c := range app.Commands {
		prepare(c)
	}
	return app
}

// prepare gives a command and those below it the same treatment of wrong usage.
func prepare(c *cli.Command) {
	c.OnUsageError = onUsageError
	c.HideHelpCommand = true
	switch {
	case len(c.Subcommands) > 0:
		c.Action = noSuchCommand
		c.UsageText = "promptspool " + c.Name + " command [command options]"
	case c.ArgsUsage == "":
		c.Action = noArguments(c.Action)
	}
	for _, sub := range c.Subcommands {
		prepare(sub)
	}
}

// usageError is a call that cannot mean anything: exit code 2.
type usageError struct {
	command string // in full, with a blank behind it; empty for promptspool itself
	message string
}

func (e usageError) Error() string { return e.message }

// commandOf is the command that runs, in full ("keys create"); empty for promptspool itself.
func commandOf(c *cli.Context) string {
	_, command, _ := strings.Cut(c.Command.HelpName, " ")
	return command
}

func usagef(c *cli.Context, format string, args ...any) error {
	e := usageError{message: fmt.Sprintf(format, args...)}
	if e.command = commandOf(c); e.command != "" {
		e.command += " "
	}
	return e
}

// flagName is a flag in the library's messages, which writes --limit as -limit.
var flagName = regexp.MustCompile(`(defined|argument|flag)(:?) -([a-z-]{2,})`)

func onUsageError(c *cli.Context, err error, _ bool) error {
	return usagef(c, "%s", flagName.ReplaceAllString(err.Error(), "$1$2 --$3"))
}

func noSuchCommand(c *cli.Context) error {
	if c.Args().Present() {
		return usagef(c, "there is no command %q", c.Args().First())
	}
	if commandOf(c) == "" {
		return cli.ShowAppHelp(c)
	}
	return cli.ShowSubcommandHelp(c)
}
