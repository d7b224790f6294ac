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

// listedIDs returns the ids of rows as a list shows them. On a terminal they are short, but long enough to tell
// these rows apart.
func listedIDs(p print.Painter, rows []wire.Row) []string {
	ids := make([]string, len(rows))
	for i := range rows {
		id := rows[i].RequestID
		n := min(shortID, len(id))
		if p.Width == 0 {
			n = len(id) // a program reads it
		}
		for j := range rows {
			for other := rows[j].RequestID; id != other && strings.HasPrefix(other, id[:n]); {
				n++
			}
		}
		ids[i] = strings.TrimSuffix(id[:n], "-")
	}
	return ids
}

// Recent returns the ids of the newest requests, as short as a list shows them.
func Recent(c *cli.Context, cl *client.Client, id wire.Identity) ([]string, error) {
	page, err := cl.Search(c.Context, id, wire.Search{PerPage: 50})
	return listedIDs(print.Painter{Width: 1}, page.Items), err
}

// candidatesMax is how many requests with the same short id are named.
const candidatesMax = 5

// requestID returns the id of the one request whose id begins like this. A text that cannot be
// a short id stays as it is.
func requestID(c *cli.Context, cl *client.Client, id wire.Identity, given string) (string, error) {
	digits := strings.ToLower(strings.ReplaceAll(given, "-", ""))
	n := len(digits)
	if n < 8 || n >= 32 || strings.Trim(digits, "0123456789abcdef") != "" {
		return given, nil
	}

	first := uuid.MustParse(digits + strings.Repeat("0", 32-n))
	last := uuid.MustParse(digits + strings.Repeat("f", 32-n))
	// Its dashes are those of a whole id, which has 8, 4, 4, 4 and 12 digits.
	begins := wire.Where("request_id", "starts_with", first.String()[:n+min((n-5)/4, 4)])

	// The time in an id is when its call was accepted, or when its span began: few rows have to be looked at. Only
	// what comes from another system has other ids.
	around := []time.Time{timeOf(first).Add(-time.Minute), timeOf(last).Add(time.Minute)}
	var found []string
	for _, field := range []string{"accepted_at", "list_time", ""} {
		where := &wire.Filter{Filters: []wire.Filter{begins, wire.Where(field, "between", around)}}
		switch {
		case field == "" && found != nil:
			continue
		case field == "":
			where = &begins
		}
		page, err := cl.Search(c.Context, id, wire.Search{FilterGroup: where, PerPage: candidatesMax})
		if err != nil {
			return "", err
		}
		for _, row := range page.Items {
			found = append(found, row.RequestID)
		}
	}

	slices.Sort(found)
	switch found = slices.Compact(found); len(found) {
	case 0:
		return "", wire.Errorf(wire.CodeNotFound, "No request has an id that begins with %s.", given)
	case 1:
		return found[0], nil
	}
	return "", config.Usagef(c, "several requests have an id that begins with %s; give more of it:\n  %s",
		given, strings.Join(found, "\n  "))
}

// timeOf returns the time in a UUIDv7.
func timeOf(id uuid.UUID) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:]) >> 16)).UTC()
}
