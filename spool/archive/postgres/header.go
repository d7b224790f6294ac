package postgres

import (
	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
)

type commandTag = pgconn.CommandTag

// headerColumns are the columns of a header: those of every one, and those that rowcode defines.
var headerColumns = func() []string {
	columns := []string{"account_id", "at", "request_id", "ts", "terms", "line", "accepted"}
	for c := range rowcode.ColumnBody {
		if d := rowcode.Define(c); d.SQL != "" {
			columns = append(columns, d.SQL)
		}
	}
	return columns
}()

// header returns the values of headerColumns, or nil for an orphan.
func (f *folding) header(r *archive.Record) []any {
	row, ok := r.State.Row()
	if !ok {
		return nil
	}

	terms := withHidden(termsOf(r.Account, &row), r.Account, &r.State.State)
	values := []any{
		r.Account, nanosOf(row.ListTime), uuid(r.ID), tsOf(uuid(r.ID)), terms, rowcode.Encode(&row),
		nanosOf(row.AcceptedAt),
	}
	// In the units in which filters compare: nanoseconds for times, milliseconds for latency.
	for c := range rowcode.ColumnBody {
		d := rowcode.Define(c)
		if d.SQL == "" {
			continue
		}
		values = append(values, sqlValue(d, &row))
	}

	return values
}

// sqlValue returns what the row has in a column, nil for NULL.
func sqlValue(d *rowcode.Definition, row *wire.Row) any {
	if moment := d.Time(); moment != nil {
		if at, ok := moment(row); ok {
			return nanosOf(at)
		}
	} else if x, ok := d.Number()(row); ok {
		return x
	}
	return nil
}
