package main

import (
	"log/slog"

	"github.com/urfave/cli/v2"

	"promptspool/api"
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
	options           api.Options
	logger            *slog.Logger
	level             *slog.LevelVar // of logger
	source            config.Source  // of these settings
}

// roleFlags are the settings that `server`, `sidecar` and `up` share, besides their listeners and log.
func roleFlags() []cli.Flag {
	flags := []cli.Flag{
		config.NameFlag(),
		config.TextFlag("otlp-listen", "",
			"one more `address`, for OpenTelemetry exporters only: host:port or unix:/path. "+
				"Where they send unless told otherwise is 127.0.0.1:4318 (default: none)"),
	}
	for _, s := range api.Switches {
		if s.On == "" {
			flags = append(flags, config.SwitchFlag(s.Flag, s.Usage))
		} else {
			flags = append(flags, config.ChoiceFlag(s.Flag, s.Off, s.Usage, s.Off, s.On))
		}
	}
	return flags
}

// roleConfigOf reads roleFlags, and the listeners and log of the command that runs.
func roleConfigOf(r *config.Reader) roleConfig {
	role := roleConfig{
		name:       r.Name(),
		listen:     r.Address("listen"),
		opsListen:  r.Address("ops-listen"),
		otlpListen: r.AddressOr("otlp-listen"),
	}
	role.logger, role.level = r.Logger()
	for variable, meant := range r.Misspelt() {
		role.logger.Warn("a variable is ignored, because no setting has its name",
			"variable", variable, "did_you_mean", meant)
	}

	for _, s := range api.Switches {
		if s.On == "" {
			*s.Option(&role.options) = r.Given(s.Flag)
		} else {
			*s.Option(&role.options) = r.OneOf(s.Flag) == s.On
		}
	}
	return role
}

// limitFlags bound what one key may do.
func limitFlags() []cli.Flag {
	return config.Group("Limits",
		config.TextFlag("key-calls-max", "",
			"the `number` of requests that one key may make in a second; beyond it 429 (default: no bound)"),
		config.TextFlag("key-bytes-max", "",
			"the `size` of bodies that one key may send in a second; beyond it 429 (default: no bound)"),
	)
}

// limitsOf reads limitFlags.
func limitsOf(r *config.Reader) admission.Limits {
	return admission.Limits{
		Calls: float64(r.Count("key-calls-max", 1_000_000)),
		Bytes: float64(r.SizeOr("key-bytes-max", 0)),
	}
}
