package config

import (
	"log/slog"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/logging"
)

// LogFlags set what a command that runs until it is stopped logs, and how.
func LogFlags(level string) []cli.Flag {
	return []cli.Flag{
		TextFlag("log-level", level, "minimum log `level` on stderr: debug, info, warn or error"),
		TextFlag("log-format", "text", "the `form` of the log: text or json"),
	}
}

// Logger returns the logger that LogFlags describe. Its level may be changed while it is in use.
func (r *Reader) Logger() (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(r.Text("log-level"))); err != nil {
		r.Reject("log-level", "is not one of debug, info, warn, error")
	}

	var handler slog.Handler = slog.DiscardHandler
	options := &slog.HandlerOptions{Level: level}
	switch r.Text("log-format") {
	case "text":
		handler = slog.NewTextHandler(r.c.App.ErrWriter, options)
	case "json":
		handler = slog.NewJSONHandler(r.c.App.ErrWriter, options)
	default:
		r.Reject("log-format", "is not one of text, json")
	}
	// In front of the handler, so that repetitions cost no formatting.
	return slog.New(logging.NewThin(handler)), level
}

// ToolLogger logs the warnings and errors of a command that ends by itself, on stderr.
func ToolLogger(c *cli.Context) *slog.Logger {
	return slog.New(slog.NewTextHandler(c.App.ErrWriter, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
