package archivetool

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// spreadReport is what `archive spread` prints.
type spreadReport struct {
	Tables []string `json:"tables"` // that this run has spread
	Shards int      `json:"shards"` // of each table
}

func spreadArchive(c *cli.Context) error {
	v := config.Read(c)
	url := v.Required("archive")
	if err := v.Err(); err != nil {
		return err
	}
	if !config.IsPostgres(url) {
		return config.WrongValue(c, "archive", config.ShowArchive(url), "is not postgres://USER@HOST/NAME")
	}

	db, err := openUnused(c, "archive", url, true)
	if err != nil {
		return errors.New(Explain(err))
	}

	report := spreadReport{Tables: []string{}}
	report.Shards, err = db.Distribute(c.Context, func(table string) {
		_, _ = fmt.Fprintf(c.App.ErrWriter, "Spread %s\n", table)
		report.Tables = append(report.Tables, table)
	})
	switch {
	case err != nil && len(report.Tables) > 0:
		err = fmt.Errorf("%s\nwhat was spread stays: run the same command again to continue", Explain(err))
	case err != nil:
		err = errors.New(Explain(err))
	default:
		// One that started before the first table was spread does not know of it.
		err = rejectServers(c.Context, db, "archive", url)
	}
	err = errors.Join(err, db.Close())
	if err != nil {
		return err
	}

	return print.Outcome(c, report, "Spread by project over %d shards: %d tables now, the others before.",
		report.Shards, len(report.Tables))
}
