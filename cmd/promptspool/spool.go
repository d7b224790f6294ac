package main

import "github.com/urfave/cli/v2"

// spoolCommand looks into a sidecar's spool and mends it. Each subcommand has a file of its own.
func spoolCommand() *cli.Command {
	return &cli.Command{
		Name:  "spool",
		Usage: "look into a sidecar's spool, prove it whole, mend it, empty it",
		Subcommands: []*cli.Command{
			spoolStatusCommand(), spoolCheckCommand(), spoolExportCommand(), spoolRepairCommand(), spoolDrainCommand(),
		},
	}
}
