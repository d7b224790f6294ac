package spooltool

import "github.com/urfave/cli/v2"

// SpoolCommand looks into a sidecar's spool and mends it. Each subcommand has a file of its own.
func SpoolCommand() *cli.Command {
	return &cli.Command{
		Name:  "spool",
		Usage: "look into a sidecar's spool, prove it whole, mend it, empty it",
		Subcommands: []*cli.Command{
			spoolStatusCommand(), spoolCheckCommand(), spoolExportCommand(), spoolRepairCommand(), spoolDrainCommand(),
		},
	}
}
