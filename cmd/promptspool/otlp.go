package main

import (
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

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
