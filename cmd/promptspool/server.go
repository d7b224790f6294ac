package main

import (
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

const (
	serverListen     = "127.0.0.1:8788"
	serverOpsListen  = "127.0.0.1:9788"
	sidecarListen    = "127.0.0.1:8787"
	sidecarOpsListen = "127.0.0.1:9787"
)

func bootstrapFlag() cli.Flag {
	return stringFlag("bootstrap-key", "", "make the account 'default' with exactly this `key`, of scope full; at least 32 characters. Give it by its variable: others can read a command line")
}

func serverCommand() *cli.Command {
	flags := []cli.Flag{stringFlag("data", "", "the `folder` of the archive; made when absent"), nameFlag(), bootstrapFlag()}
	flags = append(flags, listenFlags(serverListen, serverOpsListen)...)
	return &cli.Command{
		Name:  "server",
		Usage: "keep records, templates and keys",
		Flags: append(flags, logFlags("info")...),
		Action: func(c *cli.Context) error {
			data, err := need(c, "data")
			if err != nil {
				return err
			}
			name, err := nameOf(c)
			if err != nil {
				return err
			}
			log, err := logger(c)
			if err != nil {
				return err
			}
			return server(c.Context, serverConfig{
				data: data, listen: text(c, "listen"), opsListen: text(c, "ops-listen"), name: name,
				bootstrapKey: wire.Secret(text(c, "bootstrap-key")), logger: log,
			})
		},
	}
}
