// Package requests has the commands `promptspool requests`, `traces` and `sessions`: they search,
// read, count, export, import and delete records at a server.
package requests

import (
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
)

// Command is `promptspool requests`: find, read, count, import and export records.
func Command() *cli.Command {
	return config.Commands("requests", "find, read and count what was logged",
		config.Command("import FILE, or - for stdin",
			"send events to a server, one a line, as `requests export`, `spool export` and `dead export` write them",
			importEvents, config.RemoteFlags()),

		config.Command("export [FILE]",
			"write the events of all records, or of those that match, one a line, as `requests import` takes them",
			exportRequests, filter.Flags(), []cli.Flag{
				config.ChoiceFlag("order", "desc", "`which` come first (desc: the newest; "+
					"asc: those that started first, which takes longer)", "desc", "asc"),
				config.TextFlag("cursor", "", "resume at the `cursor` that an interrupted export printed"),
				config.SwitchFlag("force", "write over a file that exists"),
			}, config.RemoteFlags()),

		config.Command("get REQUEST_ID", "show one record, as a conversation", getRequest, []cli.Flag{
			config.SwitchFlag("web", "open the record's page of the dashboard, whose address is printed"),
		}, config.RemoteFlags()),

		config.Command("search", "list records, newest first",
			searchRequests, listFlags("records", wire.SortWords)),

		config.Command("tail",
			"follow new requests, oldest first, until Ctrl-C; arrivals more than a minute late are not shown",
			tailRequests, filter.Flags(), []cli.Flag{
				config.TextFlag("limit", "10", "the `number` of records to begin with, at most 1000"),
			}, config.RemoteFlags()),

		config.Command("stats",
			"count: requests, errors, scores, latency, tokens, cost; by template version, model, metadata or user",
			requestStats, filter.Flags(), []cli.Flag{
				config.ChoiceFlag("by", "version", "by `what`", statsDimensions...),
				config.ChoiceFlag("bucket", "", "also a row for each interval of this `width`; as data, intervals are "+
					"always there, and fit the time range", "second", "minute", "hour", "day"),
			}, config.RemoteFlags()),

		config.Command("delete [REQUEST_ID]",
			"delete a record, or all with a metadata value, permanently; re-imported events stay deleted",
			deleteRequests, []cli.Flag{
				config.TextFlag("metadata", "",
					"all records with this `key=value`, as when a person asks to be forgotten"),
				config.SwitchFlag("yes", "do it; without it nothing is deleted"),
			}, config.RemoteFlags()),

		config.Command("reprice",
			"read tokens, status, model and texts of what is stored again, as this version does, and price it by "+
				"the server's prices for its time; can be interrupted and resumed",
			reprice, []cli.Flag{
				config.TextFlag("cursor", "", "resume at the `cursor` that an interrupted run printed"),
			}, config.RemoteFlags()),

		config.Command("scan",
			"find credentials in stored requests, and mask them with --mask; can be interrupted and resumed",
			scanRequests, []cli.Flag{
				config.TextFlag("cursor", "", "resume at the `cursor` that an interrupted run printed"),
				config.SwitchFlag("mask", "mask what is found, for good; without it nothing is changed"),
			}, config.RemoteFlags()),

		config.Command("orphans", "list scores, metadata and links whose request has not arrived",
			listOrphans, []cli.Flag{
				config.TextFlag("limit", "100", "the `number` of lines, at most 1000"),
				config.ColumnsFlag(),
			}, pageFlags(), config.RemoteFlags()))
}
