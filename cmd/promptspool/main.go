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
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // zones of filter lines, where the machine has none

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/agents"
	"promptspool/cmd/promptspool/internal/alerts"
	"promptspool/cmd/promptspool/internal/archivetool"
	"promptspool/cmd/promptspool/internal/completion"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/experiments"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/cmd/promptspool/internal/requests"
	"promptspool/cmd/promptspool/internal/scores"
	"promptspool/cmd/promptspool/internal/spooltool"
	"promptspool/cmd/promptspool/internal/templates"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)

	// The first signal asks for an orderly stop. From before that begins, the next one ends the process.
	go func() {
		<-signals
		signal.Reset()
		stop()
	}()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is main with its surroundings as arguments. It returns the exit code: 0 done, 1 failed, 2 usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	config.Remember(app, args)
	args = config.Permute(app, args)
	if err := app.RunContext(ctx, args); err != nil {
		found, _ := app.Metadata[config.ServerFound].(string)
		return report(stderr, err, found, config.WantsJSON(args))
	}
	return 0
}

// newApp makes the command table.
func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:            "promptspool",
		Usage:           "a durable record of every call to a language model",
		Writer:          stdout,
		ErrWriter:       stderr,
		Version:         version,
		Metadata:        map[string]any{},
		HideHelpCommand: true,

		EnableBashCompletion: true, // of every shell
		BashComplete:         completion.Complete,
		ExitErrHandler:       func(*cli.Context, error) {}, // run does it
		// A tag may hold a comma.
		DisableSliceFlagSeparator: true,
		Commands: []*cli.Command{
			upCommand(), serverCommand(), sidecarCommand(),
			loginCommand(), contextsCommand(), statusCommand(), keysCommand(), peopleCommand(), projectsCommand(),
			requests.Command(), requests.TracesCommand(), requests.SessionsCommand(), requests.UsersCommand(),
			templates.Command(), experiments.Command(), scores.Command(), alerts.Command(), agents.Command(),
			spooltool.SpoolCommand(), spooltool.DeadCommand(),
			archivetool.ArchiveCommand(), archivetool.BackupCommand(), archivetool.RestoreCommand(),
			configCommand(), completion.Command(), docsCommand(), versionCommand(),
		},
	}

	app.Action = noSuchCommand
	app.OnUsageError = onUsageError
	for _, c := range app.Commands {
		prepare(c, c.Name)
	}
	return app
}

func init() { cli.HelpPrinter = printHelp }

// roles are the commands that run until they are stopped. The names of their variables lack the command.
var roles = []string{"server", "sidecar", "up"}

// prepare lets a command, and those below it, report wrong usage in the same way.
func prepare(c *cli.Command, path string) {
	c.OnUsageError = onUsageError
	c.HideHelpCommand, c.BashComplete = true, completion.Complete
	if len(c.Subcommands) > 0 {
		c.Action = noSuchCommand
	}
	if !slices.Contains(roles, path) {
		config.OfCommand(path, c.Flags)
	}
	for _, sub := range c.Subcommands {
		prepare(sub, path+" "+sub.Name)
	}
}

// flagName is a flag in the library's messages, which writes --limit as -limit.
var flagName = regexp.MustCompile(`(defined|argument|flag)(:?) -([a-z-]{2,})`)

// alike are words that mean the same in other programs' commands and flags, or in other groups of these.
var alike = [][]string{
	{"get", "show", "view", "cat", "describe"},
	{"list", "ls", "search", "find"},
	{"tail", "follow", "watch", "logs"},
	{"create", "add", "new", "define", "invite"},
	{"delete", "remove", "rm", "revoke", "purge", "disable"},
	{"limit", "n", "L", "count", "lines"},
	{"after", "since", "from"},
	{"before", "until", "to"},
	{"output", "format"},
}

// meant returns the end of a message about a word that is none of some: the closest one, or one that means the same.
func meant(word string, names []string) string {
	for _, same := range alike {
		if !slices.Contains(same, strings.TrimLeft(word, "-")) {
			continue
		}
		for _, name := range names {
			if slices.Contains(same, strings.TrimLeft(name, "-")) {
				return "; did you mean " + name + "?"
			}
		}
	}
	return words.DidYouMean(word, names)
}

// onUsageError makes a usage error of one of the library's.
func onUsageError(c *cli.Context, err error, _ bool) error {
	message := flagName.ReplaceAllString(err.Error(), "$1$2 --$3")
	if _, name, unknown := strings.Cut(message, "not defined: -"); unknown {
		var names []string
		for _, f := range c.Command.Flags {
			names = append(names, "--"+f.Names()[0])
		}
		message += meant("-"+name, names)
	}
	return config.Usagef(c, "%s", message)
}

// noSuchCommand shows the help of a group of commands, or rejects a word that is none of them.
func noSuchCommand(c *cli.Context) error {
	if word := c.Args().First(); word != "" {
		var names, within, near []string
		for _, sub := range c.Command.Subcommands {
			names = append(names, sub.Name)
			for _, inner := range sub.Subcommands {
				switch {
				case inner.Name == word:
					within = append(within, sub.Name+" "+word)
				case len(words.Closest(word, []string{inner.Name})) > 0:
					near = append(near, sub.Name+" "+inner.Name)
				}
			}
		}
		hint := meant(word, names)
		if hint == "" && within == nil {
			within = near
		}
		if within != nil {
			hint = "; did you mean " + english.WordSeries(within, "or") + "?"
		}
		return config.Usagef(c, "there is no command %q%s", word, hint)
	}

	if config.CommandName(c) == "" {
		return cli.ShowAppHelp(c)
	}
	return cli.ShowSubcommandHelp(c)
}

// version is that of this source. A release sets all three with -ldflags "-X main.version=...".
var (
	version = "0.1.0"
	commit  = "" // if empty, what Go recorded of the working copy counts
	date    = "" // of the commit, so that the same source always gives the same binary
)

func versionCommand() *cli.Command {
	return config.Command("version", "show the version, its commit and the commit's date",
		printVersion, config.OutputFlags())
}

// versionInfo is what `version -o json` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // the commit
	Date     string `json:"date,omitempty"`     // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func printVersion(c *cli.Context) error {
	v := versionInfo{
		Version:  version,
		Revision: cmp.Or(commit, recorded("vcs.revision")),
		Date:     cmp.Or(date, recorded("vcs.time")),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}

	words := []string{"promptspool", v.Version, v.Platform, v.Go, v.Revision, v.Date}
	return print.Outcome(c, v, "%s", strings.TrimSpace(strings.Join(words, " ")))
}

// recorded returns what Go recorded of the working copy that the binary was built from. It is
// empty for a build outside git, or with -buildvcs=false.
func recorded(key string) string {
	// Go writes it into the binary: no script has to.
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}

// report prints why a command failed, as JSON if its output is, and returns the exit code: the error's own,
// or 1 failed, 2 usage. found follows the reason of a failure.
func report(w io.Writer, err error, found string, asJSON bool) int {
	code, body := 1, wire.ErrorBody{Error: "failed", Message: err.Error(), Fields: []wire.FieldError{}}
	// People are told more than the message.
	more := ""
	if usage, ok := errors.AsType[config.UsageError](err); ok {
		code, body.Error, body.Message = 2, "usage", usage.Error()
		more = fmt.Sprintf("See `%s`.\n", usage.Help())
	} else if e, ok := errors.AsType[*wire.Error](err); ok {
		body = e.Body()
		body.Message = cmp.Or(e.Message, e.Error())
		for _, f := range e.Untold() {
			more += fmt.Sprintf("  %s %s\n", print.Printable(f.Field), print.Printable(f.Reason))
		}
	}

	if code == 1 {
		body.Message += found
	}
	if e, ok := errors.AsType[cli.ExitCoder](err); ok {
		code = e.ExitCode()
	}
	if asJSON {
		// Nothing can be done if stderr fails.
		_ = print.JSONLine(w, body)
		return code
	}
	prefix := "promptspool: "
	for line := range strings.SplitSeq(body.Message, "\n") {
		fmt.Fprintln(w, prefix+print.Printable(line))
		prefix = ""
	}
	fmt.Fprint(w, more)
	return code
}
