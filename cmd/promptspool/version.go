package main

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// version is that of this source; a release sets it with -ldflags "-X main.version=...".
var version = "0.1.0"

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "say which version this is",
		Flags: []cli.Flag{config.OutputFlag()},
		Action: func(c *cli.Context) error {
			v := struct {
				Version  string `json:"version"`
				Revision string `json:"revision,omitempty"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Revision = s.Value
					}
				}
			}
			return print.Output(c, v, func(t *print.Table) {
				t.Row(strings.TrimSpace(strings.Join([]string{"promptspool", v.Version, v.Platform, v.Go, v.Revision}, " ")))
			})
		},
	}
}
