package requests

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// shortID is how much of an id a list shows at least: 12 hex digits, which are the time to a millisecond.
const shortID = len("0198c1f2-abcd")

// listedIDs returns the ids of rows as a list shows them. On a terminal they are short, but long enough to tell these
// rows apart.
func listedIDs[T any](p print.Painter, rows []T, idOf func(T) string) []string {
	ids := make([]string, len(rows))
	for i := range rows {
		id := idOf(rows[i])
		n := min(shortID, len(id))
		if p.Width == 0 {
			// A program reads it.
			n = len(id)
		}
		for _, row := range rows {
			for other := idOf(row); id != other && strings.HasPrefix(other, id[:n]); {
				n++
			}
		}
		ids[i] = strings.TrimSuffix(id[:n], "-")
	}
	return ids
}

func idOfRow(r wire.Row) string { return r.RequestID }

func idOfRollup(r wire.Rollup) string { return r.ID }

// Recent returns the newest ids that an argument of this name takes, as short as a list shows them.
func Recent(c *cli.Context, cl *client.Client, id wire.Identity, argument string) ([]string, error) {
	const most = 50
	terminal := print.Painter{Width: 1}
	if argument == "TRACE_ID" {
		page, err := cl.Rollups(c.Context, id, wire.RollupSearch{Of: "traces", PerPage: most})
		return listedIDs(terminal, page.Items, idOfRollup), err
	}
	page, err := cl.Search(c.Context, id, wire.Search{PerPage: most})
	return listedIDs(terminal, page.Items, idOfRow), err
}

// candidatesMax is how many requests with the same short id are named.
const candidatesMax = 5

// requestID returns the id of the one request whose id begins like this.
func requestID(c *cli.Context, cl *client.Client, id wire.Identity, given string) (string, error) {
	digits := strings.ToLower(strings.ReplaceAll(given, "-", ""))
	n := len(digits)
	switch {
	case n < 8 || n > 32 || strings.Trim(digits, "0123456789abcdef") != "":
		return "", config.Usagef(c, "%q is not a request id or its beginning, of at least 8 hex digits", given)
	case n == 32:
		return given, nil
	}

	first := uuid.MustParse(digits + strings.Repeat("0", 32-n))
	last := uuid.MustParse(digits + strings.Repeat("f", 32-n))
	// Its dashes are those of a whole id, which has 8, 4, 4, 4 and 12 digits.
	begins := wire.Where("request_id", "starts_with", first.String()[:n+min((n-5)/4, 4)])

	// The time in an id is when its call was accepted, or when its span began: few rows have to be looked at. Only
	// what comes from another system has other ids.
	around := []time.Time{timeOf(first).Add(-time.Minute), timeOf(last).Add(time.Minute)}
	within := func(field string) *wire.Filter {
		return &wire.Filter{Filters: []wire.Filter{begins, wire.Where(field, "between", around)}}
	}
	var found []string
	for _, where := range []*wire.Filter{within("accepted_at"), within("list_time"), &begins} {
		if where == &begins && found != nil {
			break
		}
		page, err := cl.Search(c.Context, id, wire.Search{FilterGroup: where, PerPage: candidatesMax})
		if err != nil {
			return "", err
		}
		for _, row := range page.Items {
			found = append(found, row.RequestID)
		}
	}

	return theOne(c, "request", given, found)
}

// traceID returns the id of the one trace whose id begins like this.
func traceID(c *cli.Context, cl *client.Client, id wire.Identity, given string) (string, error) {
	if len(given) < 8 || len(given) >= 32 {
		return given, nil
	}
	has := wire.Where("id", "contains", given)
	page, err := cl.Rollups(c.Context, id, wire.RollupSearch{Of: "traces", Having: &has})
	if err != nil {
		return "", err
	}
	var found []string
	for _, trace := range page.Items {
		if strings.HasPrefix(trace.ID, strings.ToLower(given)) {
			found = append(found, trace.ID)
		}
	}
	return theOne(c, "trace", given, found)
}

// theOne returns the id that was meant by its beginning, unless there are several or none.
func theOne(c *cli.Context, what, given string, found []string) (string, error) {
	slices.Sort(found)
	switch found = slices.Compact(found); len(found) {
	case 0:
		return "", wire.Errorf(wire.CodeNotFound, "No %s has an id that begins with %s.", what, given)
	case 1:
		return found[0], nil
	}
	return "", config.Usagef(c, "several %ss have an id that begins with %s; give more of it:\n  %s",
		what, given, strings.Join(found, "\n  "))
}

// timeOf returns the time in a UUIDv7.
func timeOf(id uuid.UUID) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:]) >> 16)).UTC()
}
