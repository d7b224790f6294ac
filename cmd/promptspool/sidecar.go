package main

import (
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
		stringFlag("drain", drainDefault, "the `time` that a stop waits for the spool to empty"),
	}
}

func sidecarCommand() *cli.Command {
	flags := []cli.Flag{
		stringFlag("data", "", "the `folder` of spool, keys and cached templates; made when absent"),
		stringFlag("upstream", "", "the `URL` of the server, such as http://127.0.0.1:8788"),
		nameFlag(),
	}
	flags = append(flags, listenFlags(sidecarListen, sidecarOpsListen)...)
	flags = append(flags, spoolFlags()...)
	flags = append(flags, secretFlags("api-key", "the `key` that the sidecar sends in place of what apps send, so that they hold no secret")...)
	flags = append(flags, secretFlags("local-key", "with --api-key, the `key` that apps must present; if absent they need none")...)
	return &cli.Command{
		Name:  "sidecar",
		Usage: "take writes on localhost and forward them to a server",
		Flags: append(flags, logFlags("info")...),
		Action: func(c *cli.Context) error {
			config, err := sidecarConfigOf(c)
			if err != nil {
				return err
			}
			if config.data, err = need(c, "data"); err != nil {
				return err
			}
			if config.upstream, err = need(c, "upstream"); err != nil {
				return err
			}
			if _, err := client.New(client.Config{URL: config.upstream}); err != nil {
				return usagef(c, "--upstream (or %s): %v", env("upstream")[0], err)
			}
			if config.apiKey, err = secret(c, "api-key"); err != nil {
				return err
			}
			if config.localKey, err = secret(c, "local-key"); err != nil {
				return err
			}
			if config.localKey != "" && config.apiKey == "" {
				return usagef(c, "--local-key says what apps present in place of a key of the server's, so it needs --api-key")
			}
			config.listen, config.opsListen = text(c, "listen"), text(c, "ops-listen")
			return sidecar(c.Context, config)
		},
	}
}

// sidecarConfigOf reads the flags that `sidecar` and `up` share.
func sidecarConfigOf(c *cli.Context) (sidecarConfig, error) {
	bytesMax, err := size(c, "spool-bytes-max")
	if err != nil {
		return sidecarConfig{}, err
	}
	freeMin, err := sizeOr(c, "spool-free-min", 0)
	if err != nil {
		return sidecarConfig{}, err
	}
	diskMax, err := sizeOr(c, "disk-max", bytesMax+diskBesideSpool)
	if err != nil {
		return sidecarConfig{}, err
	}
	drain, err := duration(c, "drain")
	if err != nil {
		return sidecarConfig{}, err
	}
	name, err := nameOf(c)
	if err != nil {
		return sidecarConfig{}, err
	}
	log, err := logger(c)
	return sidecarConfig{
		name: name, spoolBytesMax: bytesMax, spoolFreeMin: freeMin, diskMax: diskMax,
		allowHosts: hostsOf(c, "allow-host"), drain: min(drain, drainMax), logger: log,
	}, err
}

// sizeOr is size for a flag that may be left out.
func sizeOr(c *cli.Context, name string, fallback int64) (int64, error) {
	if text(c, name) == "" {
		return fallback, nil
	}
	return size(c, name)
}
