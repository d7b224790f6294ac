package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
)

const (
	spoolBytesDefault = "1GiB"
	drainDefault      = "10s"
	drainMax          = time.Hour
	diskBesideSpool   = 256 << 20 // what --disk-max leaves for keys and templates when it is not given
)

// spoolFlags are those of a sidecar that `up` has too.
func spoolFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag("spool-bytes-max", spoolBytesDefault, "the `size` of disk that the spool may take, such as 8GiB; beyond it new writes get 503"),
		stringFlag("spool-free-min", "", "the `size` that stays free on the spool's disk; below it new writes get 503; if absent 64MiB, or a sixteenth of a disk below 1GiB"),
		stringFlag("disk-max", "", "the `size` that the whole data folder may take; beyond it new writes get 503; if absent --spool-bytes-max and 256MiB more"),
		listFlag("allow-host", "a Host `name`, besides localhost, by which the sidecar may be called; may be repeated"),
		listFlag("template-preload", "a `template` to fetch at the start, so that it is there when the server goes away: NAME, NAME@label:LABEL, or label:LABEL for all that have the label; may be repeated"),
		stringFlag("drain", drainDefault, "the `time` that a stop waits for the spool to empty"),
	}
}

func sidecarCommand() *cli.Command {
	flags := []cli.Flag{
		configFlag(),
		stringFlag("data", "", "the `folder` of spool, keys and cached templates; made when absent"),
		nameFlag(),
	}
	flags = append(flags, upstreamFlags()...)
	flags = append(flags, listenFlags(sidecarListen, sidecarOpsListen)...)
	flags = append(flags, spoolFlags()...)
	flags = append(flags, secretFlags("api-key", "the `key` that the sidecar sends in place of what apps send, so that they hold no secret")...)
	flags = append(flags, secretFlags("local-key", "with --api-key, the `key` that apps must present; if absent they need none")...)
	flags = append(flags, secretFlags("redact-secret", "the `secret` that keys the hashes of redacted values; the same one makes the same hashes")...)
	flags = append(flags, limitFlags()...)
	return &cli.Command{
		Name:   "sidecar",
		Usage:  "take writes on localhost and forward them to a server",
		Flags:  append(flags, logFlags("info")...),
		Before: applyConfig,
		Action: func(c *cli.Context) error {
			config, err := sidecarRoleOf(c)
			if err != nil {
				return err
			}
			config.reload = newReloader(c)
			go tendMemory(c.Context)
			return sidecar(c.Context, config)
		},
	}
}

// sidecarRoleOf reads the settings of `sidecar`.
func sidecarRoleOf(c *cli.Context) (sidecarConfig, error) {
	v := &values{c: c}
	config := sidecarConfigOf(v)
	config.listen, config.opsListen, config.tls = v.address("listen"), v.address("ops-listen"), v.listenTLS()
	config.upstreamTLS = v.tlsState("upstream-cert-file", "upstream-key-file", "upstream-ca-file")
	config.apiKey, config.localKey = v.secret("api-key"), v.secret("local-key")
	if config.localKey != "" && config.apiKey == "" {
		v.note(usagef(c, "%s says what apps present in place of a key of the server's, so it needs --api-key", where(c, "local-key")))
	}
	config.redact = v.redact()
	config.limits, config.upstream = v.limits(), v.upstreamURL()
	if len(v.faults) == 0 { // the commonest slip comes alone
		config.data, config.upstream = v.need("data"), v.need("upstream")
	}
	if _, err := client.New(client.Config{URL: config.upstream}); err != nil && config.upstream != "" {
		v.note(fmt.Errorf("%s: %w", where(v.c, "upstream"), err))
	}
	return config, v.err()
}

// sidecarConfigOf reads the settings that `sidecar` and `up` share.
func sidecarConfigOf(v *values) sidecarConfig {
	bytesMax := v.size("spool-bytes-max")
	config := sidecarConfig{
		name:          v.name(),
		spoolBytesMax: bytesMax,
		spoolFreeMin:  v.sizeOr("spool-free-min", 0),
		diskMax:       v.sizeOr("disk-max", bytesMax+diskBesideSpool),
		drain:         min(v.duration("drain"), drainMax),
		allowHosts:    hostsOf(v.c, "allow-host"),
		preload:       texts(v.c, "template-preload"),
	}
	if log := v.logging(); log != nil {
		config.logger, config.level = log.Logger, log.level
	}
	if bytesMax > 0 && config.diskMax < bytesMax && v.text("disk-max") != "" {
		v.wrong("disk-max", "is less than --spool-bytes-max, "+v.text("spool-bytes-max")+"; the data folder holds the spool")
	}
	return config
}

// sameOwnKeys refuses a reload that gives or takes away a key of the sidecar's own: which calls it serves hangs on that. Another
// key in the place of one is taken over.
func sameOwnKeys(before, after sidecarConfig) error {
	switch {
	case (before.apiKey == "") != (after.apiKey == ""):
		return errors.New("--api-key was given or taken away, which needs a restart")
	case (before.localKey == "") != (after.localKey == ""):
		return errors.New("--local-key was given or taken away, which needs a restart")
	}
	return nil
}
