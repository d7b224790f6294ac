package main

import (
	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
)

// remoteFlags say which server is asked, as whom, and how the answer is printed.
func remoteFlags() []cli.Flag { return append(serverFlags(), outputFlag()) }

// serverFlags say which server is asked, and as whom.
func serverFlags() []cli.Flag {
	return append([]cli.Flag{
		stringFlag("url", "http://"+serverListen, "the `URL` of the server, or of a sidecar"),
		stringFlag("key", "", "a `key` of scope full, as `promptspool keys create --scope full` makes; better given by its variable"),
	}, trustFlags("url")...)
}

// remote makes the client that serverFlags describe. The caller closes it.
func remote(c *cli.Context) (*client.Client, wire.Identity, error) {
	v := values{c: c}
	key := v.need("key")
	trust, err := trustOf(c, "url")
	v.note(err)
	if err := v.err(); err != nil {
		return nil, wire.Identity{}, err
	}

	cl, err := client.New(client.Config{URL: text(c, "url"), Version: version, TLS: trust})
	if err != nil {
		return nil, wire.Identity{}, usagef(c, "--url (or %s): %v", env("url")[0], err)
	}
	return cl, wire.Identity{Key: wire.Secret(key)}, nil
}

func requestsCommand() *cli.Command {
	return &cli.Command{
		Name:  "requests",
		Usage: "find, read and count what was logged",
		Subcommands: []*cli.Command{
			importCommand(), exportCommand(),
			getCommand(), searchCommand(), tailCommand(), statsCommand(), deleteCommand(), repriceCommand(), scanCommand(),
			orphansCommand(),
		},
	}
}
