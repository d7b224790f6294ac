package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// steps are next steps that a server names for callers of its API, each followed by the one at a command line.
var steps = strings.NewReplacer(
	"Create one with `promptspool keys create` on the server, "+
		"and send it as api_key in the body or in the header X-API-KEY.",
	"Set PROMPTSPOOL_KEY to one that `promptspool keys create --scope full` makes on the server.",

	"GET /prompt-templates lists those that exist.",
	"`promptspool templates list` shows those that exist.",
)

// report prints why a command failed, as JSON if its output is, and returns the exit code: the error's own,
// or 1 failed, 2 usage. found follows the reason of a failure.
func report(w io.Writer, err error, found string, asJSON bool) int {
	code, body := 1, wire.ErrorBody{Error: "failed", Message: err.Error(), Fields: []wire.FieldError{}}
	more := "" // than the message, for people
	if usage, ok := errors.AsType[config.UsageError](err); ok {
		code, body.Error, body.Message = 2, "usage", usage.Error()
		more = fmt.Sprintf("See `%s`.\n", usage.Help())
	} else if e, ok := errors.AsType[*wire.Error](err); ok {
		body = e.Body()
		body.Message = steps.Replace(cmp.Or(e.Message, e.Error()))
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
		_ = print.JSONLine(w, body) // as every write to stderr
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
