package spooltool

import (
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/spool/queue"
)

// DeadCommand is `promptspool dead`: events that the server rejects, held for their key or dead letters.
func DeadCommand() *cli.Command {
	return config.Commands("dead", "list, show, replay, export and purge events that the server refuses",
		deadListCommand(), deadShowCommand(), deadReplayCommand(), deadExportCommand(), deadPurgeCommand())
}

// laneFlags returns --lane and --data, which every subcommand has.
func laneFlags() []cli.Flag {
	return []cli.Flag{
		config.ChoiceFlag("lane", "", "only this `lane` (held: the key is refused; dead: the content is)",
			queue.LaneHeld.String(), queue.LaneDead.String()),
		sidecarDataFlag(),
	}
}

func allFlag() cli.Flag { return config.SwitchFlag("all", "every event, instead of some by sequence") }

func deadExportCommand() *cli.Command {
	export := func(c *cli.Context) error {
		return export(c, func(do func(ops.SpoolEvent) error) error { return deadEvents(c, do) })
	}
	return config.Command("export [FILE]",
		"write events as newline-delimited JSON, which `requests import` takes",
		export, laneFlags())
}

// deadEvents calls do for every event in the lane of --lane, or in both lanes.
func deadEvents(c *cli.Context, do func(ops.SpoolEvent) error) error {
	r := config.Read(c)
	lanes := []string{queue.LaneHeld.String(), queue.LaneDead.String()}
	if lane := r.OneOf("lane"); lane != "" {
		lanes = []string{lane}
	}
	if err := r.Err(); err != nil {
		return err
	}

	for _, lane := range lanes {
		if err := eachEvent(c, lane, do); err != nil {
			return err
		}
	}
	return nil
}
