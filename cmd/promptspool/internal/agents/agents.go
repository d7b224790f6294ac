// Package agents has the command `promptspool mcp`: coding agents start it to read records and templates, and
// it sets them up for that.
package agents

import (
	"context"
	"encoding/json"

	"github.com/urfave/cli/v2"

	"promptspool/api/mcp"
	"promptspool/cmd/promptspool/internal/config"
)

// Command is `promptspool mcp`: the tools of a server for an agent on this machine.
func Command() *cli.Command {
	var names []string
	for _, a := range agents {
		names = append(names, a.name)
	}

	return config.Command("mcp [setup]",
		"let a coding agent read records and templates, over MCP; with setup, show the agent's entry for that",
		run, []cli.Flag{
			config.ChoiceFlag("client", "", "which `agent` to set up", names...),
			config.SwitchFlag("write", "write it into the agent's own file, which keeps everything else"),
		}, config.ServerFlags())
}

func run(c *cli.Context) error {
	v := config.Read(c)
	switch {
	case c.Args().First() == "setup" && c.NArg() == 1:
		return setUp(c, v)
	case c.Args().Present():
		return config.Usagef(c, "unexpected argument %q: give setup or nothing", c.Args().First())
	}

	cl, id, err := v.Remote()
	if err != nil {
		return err
	}
	call := func(ctx context.Context, method, target string, body []byte) (json.RawMessage, error) {
		return cl.Call(ctx, id, method, target, body)
	}
	server := mcp.New(mcp.Config{Version: c.App.Version, Call: call, Panicked: func(p any) { panic(p) }})
	return server.Run(c.Context)
}
