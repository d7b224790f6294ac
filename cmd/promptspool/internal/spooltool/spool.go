package spooltool

import (
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

// SpoolCommand is `promptspool spool`. Each subcommand has its own file.
func SpoolCommand() *cli.Command {
	return config.Commands("spool", "inspect, verify, repair and drain a sidecar's spool",
		config.Command("status",
			"show the events queued for the server; for a stopped sidecar, every event is read",
			spoolStatus, config.ShowingFlags(), []cli.Flag{sidecarDataFlag()}),

		config.Command("check",
			"read and verify every event, and prove that none is missing; changes nothing",
			checkSpool, []cli.Flag{sidecarDataFlag()}, config.OutputFlags()),

		config.Command("export [FILE]",
			"write events as newline-delimited JSON, which `requests import` takes",
			exportSpool, []cli.Flag{sidecarDataFlag()}),

		config.Command("repair", "show what would mend a stopped sidecar's spool, and do it with --apply",
			repairSpool, []cli.Flag{
				config.SwitchFlag("apply", "do it; what is damaged is kept in the folder quarantine"),
				sidecarDataFlag(),
			}, config.OutputFlags()),

		config.Command("drain",
			"deliver what a stopped sidecar's spool holds, until it is empty; "+
				"held events too, if the server takes their key",
			drainStopped, []cli.Flag{
				config.TextFlag("timeout", "10m", "after which `time` to give up; what is left stays"),
				sidecarDataFlag(),
				config.TextFlag("upstream", "", "the server's `URL`, such as http://127.0.0.1:8788"),
			}, config.OutputFlags(), config.TrustFlags("upstream")))
}
