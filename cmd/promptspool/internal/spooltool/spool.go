package spooltool

import "github.com/urfave/cli/v2"

// SpoolCommand is `promptspool spool`. Each subcommand has its own file.
func SpoolCommand() *cli.Command {
	return &cli.Command{
		Name:  "spool",
		Usage: "inspect, verify, repair and drain a sidecar's spool",
		Subcommands: []*cli.Command{
			spoolStatusCommand(),
			spoolCheckCommand(),
			spoolExportCommand(),
			spoolRepairCommand(),
			spoolDrainCommand(),
		},
	}
}
