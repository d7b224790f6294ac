package main

import (
	"log/slog"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/proxy/redact"
	"promptspool/registry/prices"
	"promptspool/spool/archive"
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

// serverConfig is what a server is started with.
type serverConfig struct {
	roleConfig
	archive      wire.Secret // a postgres:// URL; "": Badger in data
	public       publicAddress
	bootstrapKey wire.Secret // "" for none
	prices       *prices.Table
	providerURLs wire.ProviderBaseURLs
	retention    archive.Retention
	freeMin      int64 // of the disk that stays free under Badger; 0 for its default
	signUp       wire.SignUp

	// ready is called once, when calls are taken, with the code with which the first person signs up: "" if somebody
	// has signed up.
	ready func(at addresses, setup wire.Secret)
}

// sidecarConfig is what a sidecar is started with.
type sidecarConfig struct {
	roleConfig
	upstream         string
	upstreamTLS      *config.Certificates // nil: the system's authorities, and no certificate of our own
	spoolBytesMax    int64                // of disk that the spool takes
	spoolFreeMin     int64                // of the disk that stays free; 0 for the spool's default
	diskMax          int64                // of disk that the data folder takes
	allowHosts       []string
	preload          []string         // templates to fetch at the start
	apiKey, localKey wire.Secret      // the sidecar's own key, and the one that apps must present then; "" for none
	redact           *redact.Rules    // nil for none
	drain            time.Duration    // how long a stop waits for the spool to empty
	now              func() time.Time // the system's clock; nil for time.Now
	ready            func(addresses)
}
