package main

import (
	"time"

	"github.com/urfave/cli/v2"
)

const (
	spoolBytesDefault = "1GiB"
	drainDefault      = "10s"
	drainMax          = time.Hour
)

// spoolFlags are those of a sidecar that `up` has too.
func spoolFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag("spool-bytes-max", spoolBytesDefault, "the `size` of what may wait for the server, such as 8GiB; beyond it new writes get 503"),
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
	drain, err := duration(c, "drain")
	if err != nil {
		return sidecarConfig{}, err
	}
	log, err := logger(c)
	return sidecarConfig{
		name: text(c, "name"), spoolBytesMax: bytesMax, allowHosts: hostsOf(c, "allow-host"), drain: min(drain, drainMax), logger: log,
	}, err
}
