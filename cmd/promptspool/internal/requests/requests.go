package requests

import "github.com/urfave/cli/v2"

// Command is `promptspool requests`: find, read, count, import and export records.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "requests",
		Usage: "find, read and count what was logged",
		Subcommands: []*cli.Command{
			importCommand(),
			exportCommand(),
			getCommand(),
			searchCommand(),
			tailCommand(),
			statsCommand(),
			deleteCommand(),
			repriceCommand(),
			rereadCommand(),
			scanCommand(),
			orphansCommand(),
		},
	}
}
