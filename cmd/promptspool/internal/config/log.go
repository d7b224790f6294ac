package config

import (
	"log/slog"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/logging"
)

// LogFlags set what a command that runs until it is stopped logs, and how.
func LogFlags(level string) []cli.Flag {
	return Group("Log",
		ChoiceFlag("log-level", level, "minimum log `level` on stderr", "debug", "info", "warn", "error"),
		ChoiceFlag("log-format", "text", "the `form` of the log", "text", "json"),
	)
}

// Logger returns the logger that LogFlags describe. Its level may be changed while it is in use.
func (r *Reader) Logger() (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	_ = level.UnmarshalText([]byte(r.OneOf("log-level"))) // a wrong one is noted

	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(r.c.App.ErrWriter, options)
	if r.OneOf("log-format") == "json" {
		handler = slog.NewJSONHandler(r.c.App.ErrWriter, options)
	}
	// In front of the handler, so that repetitions cost no formatting.
	return slog.New(logging.NewThin(handler)), level
}

// ToolLogger logs the warnings and errors of a command that ends by itself, on stderr.
func ToolLogger(c *cli.Context) *slog.Logger {
	return slog.New(slog.NewTextHandler(c.App.ErrWriter, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
