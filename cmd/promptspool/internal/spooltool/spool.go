package spooltool

import (
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

// SpoolCommand is `promptspool spool`. Each subcommand has its own file.
func SpoolCommand() *cli.Command {
	return config.Commands("spool", "inspect, verify, repair and drain a sidecar's spool",
		spoolStatusCommand(), spoolCheckCommand(), spoolExportCommand(), spoolRepairCommand(), spoolDrainCommand())
}
