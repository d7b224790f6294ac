package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/database/postgres/schema"
)

// rollupColumns are the columns of rollups. Those of rollup_totals are all but the last.
var rollupColumns = slices.Concat([]string{"account_id", "kind", "name", "first_at", "last_at"},
	rollup.Columns[:], []string{"ts"})

// rollupNumbers are the columns that rollupTargets are for.
var rollupNumbers = strings.Join(totalColumns[3:], ", ")

var totalColumns = rollupColumns[:len(rollupColumns)-1]

func rollupTargets(sums *rollup.Sums) []any {
	targets := []any{&sums.First, &sums.Last}
	for i := range sums.Of {
		targets = append(targets, &sums.Of[i])
	}
	return targets
}

// addToRollup returns the end of an INSERT that adds to rows that exist.
func addToRollup(table, key string) string {
	sql := fmt.Sprintf(` ON CONFLICT (%[2]s) DO UPDATE SET first_at = least(%[1]s.first_at, excluded.first_at),
		last_at = greatest(%[1]s.last_at, excluded.last_at)`, table, key)
	for _, column := range rollup.Columns {
		sql += fmt.Sprintf(", %[2]s = %[1]s.%[2]s + excluded.%[2]s", table, column)
	}
	return sql
}

var (
	addToWeek  = addToRollup("rollups", "account_id, kind, name, ts")
	addToTotal = addToRollup("rollup_totals", "account_id, kind, name")
)

// queueRollups adds to the roll-ups what the group changes, and deletes those that have no records
// any more. Writers to the same name wait for each other's commits from here on.
func (f *folding) queueRollups(b *pgx.Batch) {
	rows := func(changes []*archive.RollupChange) (rows [][]any) {
		for _, c := range changes {
			row := []any{c.Account, int(c.Kind), c.Name, c.First, c.Last}
			for _, n := range c.Of {
				row = append(row, n)
			}
			rows = append(rows, append(row, c.Week))
		}
		return rows
	}
	weeks := rows(f.Rollups(func(id uuid) time.Time { return schema.WeekOf(id.Time()) }))
	changes := f.Rollups(func(uuid) (all time.Time) { return all })
	totals := rows(changes)
	for i := range totals {
		totals[i] = totals[i][:len(totalColumns)]
	}
	queueInserts(b, "rollups", rollupColumns, weeks, addToWeek)
	queueInserts(b, "rollup_totals", totalColumns, totals, addToTotal)

	fewer := make(map[string][]string)
	for _, c := range changes {
		if c.Of[rollup.Turns] < 0 || c.Of[rollup.Spans] < 0 || c.Of[rollup.Scores] < 0 {
			fewer[c.Account] = append(fewer[c.Account], c.Name)
		}
	}
	for _, account := range f.accountNames() {
		if names := fewer[account]; names != nil {
			b.Queue(`DELETE FROM rollups `+ofNoRecords, account, names)
			b.Queue(`DELETE FROM rollup_totals `+ofNoRecords, account, names)
		}
	}
}

const ofNoRecords = `WHERE account_id = $1 AND kind = ANY('{0,1,2}') AND name = ANY($2)
	AND turns = 0 AND spans = 0 AND scores = 0`

// dropRollups takes a week out of the totals before its partitions are dropped.
func dropRollups(ctx context.Context, tx pgx.Tx, week time.Time) error {
	const names = `SELECT account_id, kind, name FROM rollups WHERE ts = $1`
	var sums []string
	for _, column := range rollup.Columns {
		sums = append(sums, "sum("+column+")::bigint")
	}
	// Added up again, as the bounds cannot be subtracted. Writers to one of the names wait, and add to
	// the new row.
	for _, sql := range []string{
		`DELETE FROM rollup_totals WHERE (account_id, kind, name) IN (` + names + `)`,
		`INSERT INTO rollup_totals (` + strings.Join(totalColumns, ", ") + `)
			SELECT account_id, kind, name, min(first_at), max(last_at), ` + strings.Join(sums, ", ") + `
			FROM rollups WHERE ts <> $1 AND (account_id, kind, name) IN (` + names + `)
			GROUP BY account_id, kind, name`,
	} {
		if _, err := tx.Exec(ctx, sql, week); err != nil {
			return err
		}
	}

	return nil
}

// checkRollups compares the roll-ups of weeks, and their totals, with what the records add up to.
func (c *checker) checkRollups(ctx context.Context, tx pgx.Tx) error {
	for _, table := range []string{"rollups", "rollup_totals"} {
		left := make(map[string]rollup.Proof)
		for account, proof := range c.rollups {
			left[account] = *proof
		}
		rows, _ := tx.Query(ctx, `SELECT account_id, kind, name, `+rollupNumbers+` FROM `+table)
		var account, name string
		var kind rollup.Kind
		var sums rollup.Sums
		targets := append([]any{&account, &kind, &name}, rollupTargets(&sums)...)
		_, err := pgx.ForEachRow(rows, targets, func() error {
			proof := left[account]
			proof.Subtract(kind, name, &sums)
			left[account] = proof
			if sums.Empty() {
				return fmt.Errorf("project %q: the roll-up %q is of no records", account, name)
			}
			return nil
		})
		for account, proof := range left {
			if err == nil && proof != (rollup.Proof{}) {
				err = fmt.Errorf("project %q: the sums of sessions, traces and users (%s) are not those of the records",
					account, table)
			}
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// Rollups finds roll-ups; see archive.Store.
func (db *DB) Rollups(ctx context.Context, account string, q rollup.Query) (page rollup.Page, err error) {
	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		// After a lost connection View calls this again.
		page = rollup.Page{}
		sql, args := rollupStatement(account, &q)
		rows, _ := tx.Query(ctx, sql, args...)
		var e rollup.Entry
		targets := append([]any{&e.Name, &page.Total}, rollupTargets(&e.Sums)...)
		_, err := pgx.ForEachRow(rows, targets, func() error {
			page.Entries = append(page.Entries, e)
			return nil
		})
		return err
	})
	page.More = len(page.Entries) > q.Limit
	if page.More {
		page.Entries = page.Entries[:q.Limit]
	}

	return page, err
}

// rollupStatement returns the statement of a search.
func rollupStatement(account string, q *rollup.Query) (sql string, args []any) {
	args = []any{account, int(q.Kind)}
	arg := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}

	// Scores alone make no session.
	from := ` FROM rollup_totals WHERE account_id = $1 AND kind = $2 AND (turns > 0 OR spans > 0)`
	if q.Names != nil {
		from += " AND name = ANY(" + arg(q.Names) + ")"
	}
	if q.Like != "" {
		from += " AND strpos(lower(name), " + arg(q.Like) + ") > 0"
	}
	for _, c := range q.Where {
		from += " AND " + c.SQL + " BETWEEN " + arg(c.From) + " AND " + arg(c.To)
	}
	after, direction, beyond := "", "DESC", "<"
	if q.Ascending {
		direction, beyond = "ASC", ">"
	}
	if q.After != nil {
		value := arg(q.After.Value)
		after = fmt.Sprintf(" AND (%[1]s %[2]s %[3]s OR %[1]s = %[3]s AND name > %[4]s)",
			q.Sort.SQL, beyond, value, arg(q.After.Name))
	}

	return `SELECT name, (SELECT count(*)` + from + `), ` + rollupNumbers + from + after +
		` ORDER BY ` + q.Sort.SQL + ` ` + direction + `, name LIMIT ` + arg(q.Limit+1), args
}
