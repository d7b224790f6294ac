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
		config.Command("list", "list held events and dead letters",
			listDead, laneFlags(), config.ShowingFlags(), []cli.Flag{config.ColumnsFlag()}),

		config.Command("show SEQUENCE", "show one event as it is on disk",
			showDead, laneFlags(), config.ShowingFlags()),

		config.Command("replay [SEQUENCE...]", "send events again", replayDead, laneFlags(), []cli.Flag{
			allFlag(),
			config.TextFlag("key-file", "", "a `file` with the key that replaces theirs"),
		}, config.ShowingFlags()),

		config.Command("export [FILE]",
			"write events as newline-delimited JSON, which `requests import` takes", exportDead, laneFlags()),

		config.Command("purge [SEQUENCE...]", "remove events for good", purgeDead, laneFlags(), []cli.Flag{
			allFlag(),
			config.SwitchFlag("yes", "do it; without, only say how many"),
		}, config.ShowingFlags()))
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

func exportDead(c *cli.Context) error {
	return export(c, func(do func(ops.SpoolEvent) error) error { return deadEvents(c, do) })
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
