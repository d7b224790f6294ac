package spooltool

import (
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/spool/queue"
)

// DeadCommand is `promptspool dead`: events that the server rejects, held for their key or dead letters.
func DeadCommand() *cli.Command {
	return &cli.Command{
		Name:  "dead",
		Usage: "list, show, replay, export and purge events that the server refuses",
		Subcommands: []*cli.Command{
			deadListCommand(),
			deadShowCommand(),
			deadReplayCommand(),
			deadExportCommand(),
			deadPurgeCommand(),
		},
	}
}

// laneFlags returns --lane and --data, which every subcommand has.
func laneFlags(command string) []cli.Flag {
	lane := config.TextFlag("lane", "", "only this `lane`: held (the key is refused) or dead (the content is)")
	return append(config.OfCommand("dead "+command, lane), sidecarDataFlag())
}

// laneOutputFlags returns the flags of a subcommand that prints a table, with its own at the end.
func laneOutputFlags(command string, own ...cli.Flag) []cli.Flag {
	flags := append(laneFlags(command), config.ShowingFlags()...)
	return append(flags, config.OfCommand("dead "+command, own...)...)
}

func allFlag() cli.Flag { return config.SwitchFlag("all", "every event, instead of some by sequence") }

func deadExportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write events as newline-delimited JSON, which `requests import` takes",
		ArgsUsage: "[FILE]",
		Flags:     laneFlags("export"),
		Action: func(c *cli.Context) error {
			return export(c, func(do func(ops.SpoolEvent) error) error { return deadEvents(c, do) })
		},
	}
}

// deadEvents calls do for every event in the lane of --lane, or in both lanes.
func deadEvents(c *cli.Context, do func(ops.SpoolEvent) error) error {
	lanes := []string{queue.LaneHeld.String(), queue.LaneDead.String()}
	if name := config.Read(c).Text("lane"); name != "" {
		if _, err := queue.ParseLane(name); err != nil {
			return config.Usagef(c, "--lane: %v", err)
		}
		lanes = []string{name}
	}

	for _, lane := range lanes {
		if err := eachEvent(c, lane, do); err != nil {
			return err
		}
	}
	return nil
}
