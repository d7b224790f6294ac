package main

import (
	"context"
	"encoding/json"

	"github.com/urfave/cli/v2"

	"promptspool/api/mcp"
	"promptspool/cmd/promptspool/internal/config"
)

// mcpCommand lets coding agents read records and templates. They start it, and speak over its stdin and stdout.
func mcpCommand() *cli.Command {
	return config.Command("mcp", "let a coding agent, which starts this, read records and templates, over MCP",
		serveAgent, config.ServerFlags())
}

func serveAgent(c *cli.Context) error {
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}
	call := func(ctx context.Context, method, target string, body []byte) (json.RawMessage, error) {
		return cl.Call(ctx, id, method, target, body)
	}
	server := mcp.New(mcp.Config{Version: c.App.Version, Call: call, Panicked: func(p any) { panic(p) }})
	return server.Run(c.Context)
}
