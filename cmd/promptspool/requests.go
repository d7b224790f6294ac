package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
)

// remoteFlags say which server is asked, and as whom.
func remoteFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag("url", "http://"+serverListen, "the `URL` of the server, or of a sidecar"),
		stringFlag("key", "", "a `key` of scope full, as `promptspool keys create --scope full` makes; better given by its variable"),
		outputFlag(),
	}
}

// remote makes the client that remoteFlags describe. The caller closes it.
func remote(c *cli.Context) (*client.Client, wire.Identity, error) {
	key, err := need(c, "key")
	if err != nil {
		return nil, wire.Identity{}, err
	}
	cl, err := client.New(client.Config{URL: text(c, "url"), Version: version})
	if err != nil {
		return nil, wire.Identity{}, usagef(c, "--url (or %s): %v", env("url")[0], err)
	}
	return cl, wire.Identity{Key: wire.Secret(key)}, nil
}

func requestsCommand() *cli.Command {
	return &cli.Command{
		Name:  "requests",
		Usage: "find and read what was logged",
		Subcommands: []*cli.Command{
			importCommand(), exportCommand(),
			{Name: "get", Usage: "show one record", ArgsUsage: "REQUEST_ID", Flags: remoteFlags(), Action: getRequest},
			{
				Name: "search", Usage: "list records, newest first",
				Flags: append(own("requests search",
					listFlag("tag", "only with this `tag`; may be repeated"),
					listFlag("metadata", "only with this `key=value`; may be repeated"),
					stringFlag("model", "", "only of this `model`"),
					stringFlag("after", "", "only what started after this `time` (ISO-8601)"),
					stringFlag("before", "", "only what started before this `time` (ISO-8601)"),
					stringFlag("limit", "20", "the `number` of records, at most 1000"),
					stringFlag("cursor", "", "go on where an earlier list ended, at the `cursor` that it told"),
				), remoteFlags()...),
				Action: searchRequests,
			},
			orphansCommand(),
		},
	}
}

func searchRequests(c *cli.Context) error {
	cl, id, err := remote(c)
	if err != nil {
		return err
	}
	defer cl.Close()
	filters, err := searchFilters(c)
	if err != nil {
		return err
	}
	limit, err := count(c, "limit", wire.PageItemsMax)
	if err != nil {
		return err
	}
	search := wire.Search{PerPage: limit, Cursor: text(c, "cursor")}
	if len(filters) > 0 {
		search.FilterGroup = &wire.Filter{Logic: "AND", Filters: filters}
	}
	page, err := cl.Search(c.Context, id, search)
	if err != nil {
		return err
	}
	return output(c, page, func(t *table) {
		t.row("REQUEST_ID", "ACCEPTED", "MODEL", "LATENCY", "TOKENS", "SCORES", "STATUS", "TAGS")
		for _, r := range page.Items {
			t.row(r.RequestID, moment(r.AcceptedAt), r.Engine, milliseconds(r.Latency), tokens(r), scores(r.Scores), r.Status, strings.Join(r.Tags, ","))
		}
		if page.NextCursor != nil {
			t.w.Flush()
			fmt.Fprintf(c.App.Writer, "\nMore: --cursor %s\n", printable(*page.NextCursor))
		}
	})
}

// searchFilters turns flags into conditions.
func searchFilters(c *cli.Context) ([]wire.Filter, error) {
	var filters []wire.Filter
	add := func(field, operator, value, key string) {
		raw, _ := json.Marshal(value) // a string always encodes
		filters = append(filters, wire.Filter{Field: field, Operator: operator, Value: raw, NestedKey: key})
	}
	for _, tag := range texts(c, "tag") {
		add("tags", "is", tag, "")
	}
	for _, pair := range texts(c, "metadata") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, wrong(c, "metadata", pair, "is not key=value")
		}
		add("metadata", "is", value, key)
	}
	if model := text(c, "model"); model != "" {
		add("engine", "is", model, "")
	}
	for _, bound := range []string{"after", "before"} {
		if v := text(c, bound); v != "" {
			add("request_start_time", bound, v, "")
		}
	}
	return filters, nil
}

func getRequest(c *cli.Context) error {
	requestID, err := argument(c, "one request id, as track-request returned it")
	if err != nil {
		return err
	}
	cl, id, err := remote(c)
	if err != nil {
		return err
	}
	defer cl.Close()
	r, err := cl.Request(c.Context, id, requestID)
	if err != nil {
		return err
	}
	return output(c, r, func(t *table) { describe(t, r) })
}

// describe prints a record for people.
func describe(t *table, r wire.Record) {
	t.row("request", r.RequestID)
	t.row("function", r.FunctionName)
	t.row("model", r.Model)
	t.row("status", r.Status)
	t.row("accepted", moment(r.AcceptedAt))
	if r.LatencyMS != nil {
		t.row("latency", fmt.Sprintf("%.0f ms", *r.LatencyMS))
	}
	if r.Tokens != nil {
		t.row("tokens", *r.Tokens)
	}
	t.row("tags", strings.Join(r.Tags, ", "))
	for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
		t.row("metadata", k+" = "+r.Metadata[k])
	}
	for _, s := range r.Scores {
		t.row("score", fmt.Sprintf("%s = %d", s.Name, s.Score))
	}
	if p := r.Prompt; p != nil {
		version := "unknown version"
		if p.Version != nil {
			version = fmt.Sprintf("version %d", *p.Version)
		}
		t.row("template", p.Name+", "+version)
	}
	for _, e := range r.Events {
		t.row("event", fmt.Sprintf("%s accepted by %s %s, arrived %s", e.Kind, e.Sidecar, e.AcceptedAt.Local().Format(time.TimeOnly), e.ArrivedAt.Local().Format(time.TimeOnly)))
	}
	t.row("", "The whole request and response: -o json")
}

func milliseconds(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f ms", *seconds*1000)
}

func tokens(r wire.Row) string {
	if r.InputTokens == nil || r.OutputTokens == nil {
		return "-"
	}
	return fmt.Sprintf("%d+%d", *r.InputTokens, *r.OutputTokens)
}

func scores(list []wire.Score) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = fmt.Sprintf("%s=%d", s.Name, s.Score)
	}
	return strings.Join(texts, " ")
}
