package requests

import (
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

// Command is `promptspool requests`: find, read, count, import and export records.
func Command() *cli.Command {
	return config.Commands("requests", "find, read and count what was logged",
		importCommand(), exportCommand(), getCommand(), searchCommand(), tailCommand(), statsCommand(),
		deleteCommand(), repriceCommand(), rereadCommand(), scanCommand(), orphansCommand())
}
