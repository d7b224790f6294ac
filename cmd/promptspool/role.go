package main

import (
	"log/slog"

	"github.com/urfave/cli/v2"

	"promptspool/api/admission"
	"promptspool/cmd/promptspool/internal/config"
)

// roleConfig is what either role is started with.
type roleConfig struct {
	data              string
	name              string
	listen, opsListen config.Address
	otlpListen        config.Address       // for OpenTelemetry exporters only; At is "" for none
	tls               *config.Certificates // of the API's listener; nil for none
	limits            admission.Limits
	keepPlumbing      bool // spans of HTTP and database instrumentation
	logger            *slog.Logger
	level             *slog.LevelVar // of logger
	source            config.Source  // of these settings
}

// roleConfigOf reads the settings that `server`, `sidecar` and `up` share.
func roleConfigOf(r *config.Reader) roleConfig {
	role := roleConfig{
		name:         r.Name(),
		keepPlumbing: r.OneOf("otlp-keep", "genai", "all") == "all",
		listen:       r.Address("listen"),
		opsListen:    r.Address("ops-listen"),
		otlpListen:   r.AddressOr("otlp-listen"),
	}
	role.logger, role.level = r.Logger()
	return role
}

// otlpFlags say how a role takes what OpenTelemetry exporters send.
func otlpFlags() []cli.Flag {
	return []cli.Flag{
		config.TextFlag("otlp-listen", "",
			"one more `address`, for OpenTelemetry exporters only: host:port or unix:/path. "+
				"Where they send unless told otherwise is 127.0.0.1:4318; if absent none"),
		config.TextFlag("otlp-keep", "genai",
			"which spans of OpenTelemetry are kept: `genai` (not those of HTTP, database and similar "+
				"instrumentation that say nothing about a model call) or all"),
	}
}
