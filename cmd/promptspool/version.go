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
		Name:   "version",
		Usage:  "say which version this is",
		Flags:  []cli.Flag{config.OutputFlag()},
		Action: printVersion,
	}
}

// versionInfo is what `version -o json` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func printVersion(c *cli.Context) error {
	v := versionInfo{
		Version:  version,
		Revision: revision(),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	return print.Output(c, v, func(t *print.Table) {
		words := []string{"promptspool", v.Version, v.Platform, v.Go, v.Revision}
		t.Row(strings.TrimSpace(strings.Join(words, " ")))
	})
}

// revision returns the commit that the binary was built from; "" if the build does not record it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}

	for _, s := range info.Settings {
		// The build records it by itself, unless it is made from a copy without its
		// history.
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
