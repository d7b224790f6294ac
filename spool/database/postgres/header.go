package postgres

import (
	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
)

type commandTag = pgconn.CommandTag

// sqlColumn is a column that rowcode defines, with what tells a row's value, nil for NULL.
type sqlColumn struct {
	name  string
	value func(row *wire.Row) any
}

// sqlColumns are the columns that rowcode defines, in the units in which filters compare:
// nanoseconds for times, milliseconds for latency.
var sqlColumns = func() (columns []sqlColumn) {
	for c := range rowcode.ColumnBody {
		d := rowcode.Define(c)
		if d.SQL == "" {
			continue
		}
		moment, number := d.Time(), d.Number()
		columns = append(columns, sqlColumn{d.SQL, func(row *wire.Row) any {
			if moment != nil {
				if at, ok := moment(row); ok {
					return nanosOf(at)
				}
			} else if x, ok := number(row); ok {
				return x
			}
			return nil
		}})
	}
	return columns
}()

// headerColumns are the columns of a header: those of every one, and sqlColumns.
var headerColumns = func() []string {
	columns := []string{"account_id", "at", "request_id", "ts", "terms", "line", "accepted"}
	for _, c := range sqlColumns {
		columns = append(columns, c.name)
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
	for _, c := range sqlColumns {
		values = append(values, c.value(&row))
	}

	return values
}
