package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive/rollup"
	"promptspool/spool/database/postgres/schema"
)

// rollupColumns are the columns of rollups.
var rollupColumns = append([]string{
	"account_id", "kind", "name", "ts", "slot", "first_at", "last_at",
}, rollup.Columns[:]...)

// addToRollup ends an INSERT that adds to rows that exist.
var addToRollup = func() string {
	sql := ` ON CONFLICT (account_id, kind, name, ts, slot) DO UPDATE SET
		first_at = least(rollups.first_at, excluded.first_at), last_at = greatest(rollups.last_at, excluded.last_at)`
	for _, column := range rollup.Columns {
		sql += fmt.Sprintf(", %[1]s = rollups.%[1]s + excluded.%[1]s", column)
	}
	return sql
}()

// rollupSums are the sums over the rows of a roll-up, and rollupTargets what they are read into, after
// the bounds.
var rollupSums = func() string {
	var sums []string
	for _, column := range rollup.Columns {
		sums = append(sums, "sum("+column+")::bigint")
	}
	return strings.Join(sums, ", ")
}()

func rollupTargets(sums *rollup.Sums) []any {
	targets := []any{&sums.First, &sums.Last}
	for i := range sums.Of {
		targets = append(targets, &sums.Of[i])
	}
	return targets
}

// queueRollups adds to the roll-ups what the group changes. It returns the names that may have no
// records any more, by account.
func (f *folding) queueRollups(b *pgx.Batch) (fewer map[string][]string) {
	var rows [][]any
	fewer = make(map[string][]string)
	for _, c := range f.Rollups(func(id uuid) time.Time { return schema.WeekOf(id.Time()) }) {
		row := []any{c.Account, int(c.Kind), c.Name, c.Week, f.slot, c.First, c.Last}
		for _, n := range c.Of {
			row = append(row, n)
		}
		rows = append(rows, row)
		if c.Of[rollup.Turns] < 0 || c.Of[rollup.Spans] < 0 {
			fewer[c.Account] = append(fewer[c.Account], c.Name)
		}
	}
	queueInserts(b, "rollups", rollupColumns, rows, addToRollup)

	return fewer
}

// dropEmpty deletes the rows of those names whose rows have no records together. They are locked by
// an update before they are added up, so none changes in between. A row that others add meanwhile
// stays, and is right by itself.
func (f *folding) dropEmpty(ctx context.Context, tx pgx.Tx, account string, names []string) error {
	type week struct {
		kind int
		name string
		ts   time.Time
	}
	counts, slots := make(map[week]int64), make(map[week][]int)
	rows, err := tx.Query(ctx, `
		UPDATE rollups SET slot = slot WHERE account_id = $1 AND kind = ANY('{0,1,2}') AND name = ANY($2)
		RETURNING kind, name, ts, slot, turns, spans`, account, names)
	if err != nil {
		return err
	}
	var w week
	var slot int
	var turns, spans int64
	_, err = pgx.ForEachRow(rows, []any{&w.kind, &w.name, &w.ts, &slot, &turns, &spans}, func() error {
		// Neither is negative over all slots.
		counts[w] += turns + spans
		slots[w] = append(slots[w], slot)
		return nil
	})

	var empty columnArrays
	for w, n := range counts {
		for _, slot := range slots[w] {
			if n == 0 {
				empty.add(w.kind, w.name, w.ts, slot)
			}
		}
	}
	if err != nil || empty == nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		DELETE FROM rollups r
		USING unnest($2::smallint[], $3::text[], $4::timestamptz[], $5::int[]) AS u (kind, name, ts, slot)
		WHERE r.account_id = $1 AND r.kind = u.kind AND r.name = u.name AND r.ts = u.ts AND r.slot = u.slot`,
		append([]any{account}, empty[0], empty[1], empty[2], empty[3])...)

	return err
}

// checkRollups compares the roll-ups with what the records add up to.
func (c *checker) checkRollups(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT account_id, kind, name, min(first_at), max(last_at), `+rollupSums+`
		FROM rollups GROUP BY account_id, kind, name, ts`)
	if err != nil {
		return err
	}

	var account, name string
	var kind rollup.Kind
	var sums rollup.Sums
	targets := append([]any{&account, &kind, &name}, rollupTargets(&sums)...)
	_, err = pgx.ForEachRow(rows, targets, func() error {
		if c.rollups[account] == nil {
			c.rollups[account] = &rollup.Proof{}
		}
		c.rollups[account].Subtract(kind, name, &sums)
		if sums.Empty() {
			return fmt.Errorf("project %q: the roll-up %q is of no records", account, name)
		}
		return nil
	})
	for account, left := range c.rollups {
		if err == nil && *left != (rollup.Proof{}) {
			err = fmt.Errorf("project %q: the sums of sessions, traces and users are not those of the records", account)
		}
	}

	return err
}

// rollupMemory lets the database hold the groups of some 200,000 names, which it would write to its
// disk otherwise.
const rollupMemory = `SET LOCAL work_mem = '64MB'`

// Rollups finds roll-ups; see archive.Store.
func (db *DB) Rollups(ctx context.Context, account string, q rollup.Query) (page rollup.Page, err error) {
	key, err := schema.AccountKey(account)
	if err != nil {
		return page, err
	}

	sql, args := rollupStatement(key, &q)
	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		page = rollup.Page{} // View may call this again, after a lost connection
		if _, err := tx.Exec(ctx, rollupMemory); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		var e rollup.Entry
		targets := append([]any{&e.Name, &page.Total}, rollupTargets(&e.Sums)...)
		_, err = pgx.ForEachRow(rows, targets, func() error {
			page.Entries = append(page.Entries, e)
			return nil
		})
		return err
	})
	if page.More = len(page.Entries) > q.Limit; page.More {
		page.Entries = page.Entries[:q.Limit]
	}

	return page, err
}

// rollupStatement returns the statement of a search. It finds the names first, by few columns: to add
// up the others for all of them would take three times as long.
func rollupStatement(account string, q *rollup.Query) (sql string, args []any) {
	args = []any{account, int(q.Kind)}
	arg := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}

	where, having := "", "true"
	if q.Names != nil {
		where += " AND name = ANY(" + arg(q.Names) + ")"
	}
	if q.Like != "" {
		where += " AND strpos(lower(name), " + arg(q.Like) + ") > 0"
	}
	for _, c := range q.Where {
		having += " AND " + c.SQL + " BETWEEN " + arg(c.From) + " AND " + arg(c.To)
	}
	after, direction, beyond := "true", "DESC", "<"
	if q.Ascending {
		direction, beyond = "ASC", ">"
	}
	if q.After != nil {
		value := arg(q.After.Value)
		after = "value " + beyond + " " + value + " OR value = " + value + " AND name > " + arg(q.After.Name)
	}

	return `
		WITH page AS MATERIALIZED (
			SELECT name, total, value FROM (
				SELECT name, count(*) OVER () AS total, ` + q.Sort.SQL + ` AS value FROM rollups
				WHERE account_id = $1 AND kind = $2` + where + `
				GROUP BY name HAVING ` + having + `) AS found
			WHERE ` + after + ` ORDER BY value ` + direction + `, name LIMIT ` + arg(q.Limit+1) + `
		)
		SELECT page.name, page.total, min(first_at), max(last_at), ` + rollupSums + `
		FROM page JOIN rollups r ON r.account_id = $1 AND r.kind = $2 AND r.name = page.name
		GROUP BY page.name, page.total, page.value ORDER BY page.value ` + direction + `, page.name`, args
}
