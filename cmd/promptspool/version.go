package main

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// version is that of this source. A release sets all three with -ldflags "-X main.version=...".
var (
	version = "0.1.0"
	commit  = "" // if empty, what Go recorded of the working copy counts
	date    = "" // of the commit, so that the same source always gives the same binary
)

func versionCommand() *cli.Command {
	return config.Command("version", "show the version, its commit and the commit's date",
		printVersion, config.OutputFlags())
}

// versionInfo is what `version -o json` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // the commit
	Date     string `json:"date,omitempty"`     // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func printVersion(c *cli.Context) error {
	v := versionInfo{
		Version:  version,
		Revision: cmp.Or(commit, recorded("vcs.revision")),
		Date:     cmp.Or(date, recorded("vcs.time")),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}

	words := []string{"promptspool", v.Version, v.Platform, v.Go, v.Revision, v.Date}
	return print.Outcome(c, v, "%s", strings.TrimSpace(strings.Join(words, " ")))
}

// recorded returns what Go recorded of the working copy that the binary was built from. It is
// empty for a build outside git, or with -buildvcs=false.
func recorded(key string) string {
	// Go writes it into the binary: no script has to.
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}
