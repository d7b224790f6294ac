// Command promptspool keeps a record of every call to a language model.
//
// It is one binary with two roles. A sidecar beside the app takes writes on localhost, answers once they are
// on disk, and forwards them. A server keeps the records, the templates and the keys. serve.go shows what
// each is made of.
//
// The files here are the roles, their parts, and the commands about a process as a whole. Commands about one
// noun, and what commands share, are packages in internal.
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
	_ "time/tzdata" // zones of filter lines, where the machine has none

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/archivetool"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/machine"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/cmd/promptspool/internal/requests"
	"promptspool/cmd/promptspool/internal/spooltool"
	"promptspool/cmd/promptspool/internal/templates"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)

	// The first signal asks for an orderly stop. The second, however soon it follows, ends the process immediately.
	go func() {
		<-signals
		stop()

		second := <-signals
		signal.Reset()
		machine.EndBy(second)
	}()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is main with its surroundings as arguments. It returns the exit code: 0 done, 1 failed, 2 usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	config.Remember(app, args)
	err := app.RunContext(ctx, config.Permute(app, args))
	if err == nil {
		return 0
	}

	if usage, ok := errors.AsType[config.UsageError](err); ok {
		fmt.Fprintf(stderr, "promptspool: %v\nSee `%s`.\n", usage, usage.Help())
		return 2
	}

	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		prefix := "promptspool: "
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(stderr, prefix+print.Printable(line))
			prefix = ""
		}
		return 1
	}

	// An error of the server, with its reason for each field.
	fmt.Fprintln(stderr, "promptspool:", print.Printable(cmp.Or(e.Message, e.Error())))
	for _, f := range e.Untold() {
		fmt.Fprintf(stderr, "  %s %s\n", print.Printable(f.Field), print.Printable(f.Reason))
	}
	return 1
}

// newApp makes the command table.
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
			statusCommand(), keysCommand(), peopleCommand(), projectsCommand(),
			requests.Command(), requests.TracesCommand(), requests.SessionsCommand(), requests.UsersCommand(),
			templates.Command(),
			spooltool.SpoolCommand(), spooltool.DeadCommand(),
			archivetool.ArchiveCommand(), archivetool.BackupCommand(), archivetool.RestoreCommand(),
			configCommand(), docsCommand(), versionCommand(),
		},
	}

	app.Action = noSuchCommand
	app.OnUsageError = onUsageError
	for _, c := range app.Commands {
		prepare(c)
	}
	return app
}

// prepare lets a command, and those below it, report wrong usage in the same way.
func prepare(c *cli.Command) {
	c.OnUsageError = onUsageError
	c.HideHelpCommand = true
	switch {
	case len(c.Subcommands) > 0:
		c.Action = noSuchCommand
		c.UsageText = "promptspool " + c.Name + " command [command options]"
	case c.ArgsUsage == "":
		c.Action = config.NoArguments(c.Action)
	}
	for _, sub := range c.Subcommands {
		prepare(sub)
	}
}

// flagName is a flag in the library's messages, which writes --limit as -limit.
var flagName = regexp.MustCompile(`(defined|argument|flag)(:?) -([a-z-]{2,})`)

// onUsageError makes a usage error of one of the library's.
func onUsageError(c *cli.Context, err error, _ bool) error {
	return config.Usagef(c, "%s", flagName.ReplaceAllString(err.Error(), "$1$2 --$3"))
}

// noSuchCommand shows the help of a group of commands, or rejects a word that is none of them.
func noSuchCommand(c *cli.Context) error {
	if c.Args().Present() {
		return config.Usagef(c, "there is no command %q", c.Args().First())
	}

	if config.CommandName(c) == "" {
		return cli.ShowAppHelp(c)
	}
	return cli.ShowSubcommandHelp(c)
}
