package filter

import (
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/schema"
)

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
					return schema.Nanos(at)
				}
			} else if x, ok := number(row); ok {
				return x
			}
			return nil
		}})
	}
	return columns
}()

// Columns are the columns of the table records: those of every header, and sqlColumns.
var Columns = func() []string {
	columns := []string{"account_id", "at", "request_id", "ts", "terms", "line", "accepted"}
	for _, c := range sqlColumns {
		columns = append(columns, c.name)
	}
	return columns
}()

// Header returns the values of Columns for a record, or nil if no list shows it. account is
// its key in the tables.
func Header(account string, id archive.UUID, state *archive.State) []any {
	row, ok := state.Row()
	if !ok {
		return nil
	}

	values := []any{
		account, schema.Nanos(row.ListTime), id, id.Time(), Terms(account, &row, state),
		rowcode.Encode(&row), schema.Nanos(row.AcceptedAt),
	}
	for _, c := range sqlColumns {
		values = append(values, c.value(&row))
	}

	return values
}
