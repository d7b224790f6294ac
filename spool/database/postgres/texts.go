package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/archive/textindex"
	"promptspool/spool/crashpoint"
)

// A unit is a segment of a list with an index of the words in its bodies; see package textindex. Its
// documents are its rows, newest first. A write that changes a text in it, or which rows it has,
// removes it. So a search passes the list part by part: the rows of a unit that may match, and all
// rows between two units. Few rows are soon indexed, and join the unit below them while it is small.

// unitsStep is how many units a search looks at together.
const unitsStep = 64

// IndexTexts makes the missing indexes of words, for every account.
//
// Answers do not depend on them, so it may be stopped at any time, and any number of servers may run it.
func (db *DB) IndexTexts(ctx context.Context) error {
	return db.fill(ctx, "text_units", db.summarizing.least, db.indexNext)
}

// indexNext is the filler of units.
func (db *DB) indexNext(
	ctx context.Context, account string, bottom, top int64, least int,
) (made bool, next int64, err error) {
	var newest int64
	var rows []wire.Row
	var pages [][]byte
	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		var n, room int
		err := tx.QueryRow(ctx, `
			SELECT $3 - coalesce(sum(row_count), 0) FROM text_units
			WHERE account_id = $1 AND newest = $2 AND row_count < $3 AND form = $4`,
			account, bottom-1, db.summarizing.rows, words.Folding).Scan(&room)
		if err != nil {
			return err
		}
		newest, n, err = endOfSegment(ctx, tx, account, bottom, top, room)
		if err != nil || n < min(least, room) {
			return err
		}
		// Many rows of the same moment do not fit into a unit.
		rows, err = db.textsBetween(ctx, tx, account, bottom, newest)
		if err != nil || len(rows) > textindex.DocsMax {
			rows = nil
			return err
		}
		pages, err = db.indexRows(ctx, tx, account, rows)
		return err
	})
	if err != nil || len(rows) == 0 {
		return false, 0, err
	}

	// Reading the bodies took long. The rows are read again while no writer can change them: they must
	// be the same.
	err = db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		made = false
		if ok, err := db.lockGap(ctx, tx, "text_units", account, bottom, newest); err != nil || !ok {
			return err
		}
		now, err := db.textsBetween(ctx, tx, account, bottom, newest)
		if err != nil || !slices.EqualFunc(rows, now, func(a, b wire.Row) bool {
			return a.RequestID == b.RequestID && a.TextHash == b.TextHash
		}) {
			return err
		}

		made, next = true, newest+1
		return db.writeUnit(ctx, tx, account, newest, bottom, rows, pages)
	})

	return made, next, err
}

// writeUnit writes a unit, together with the one below if both fit into one.
func (db *DB) writeUnit(
	ctx context.Context, tx pgx.Tx, account string, newest, bottom int64, rows []wire.Row, pages [][]byte,
) error {
	ids := idsOf(rows)
	var idsBelow []byte
	below := bottom - 1
	err := tx.QueryRow(ctx, `
		DELETE FROM text_units
		WHERE account_id = $1 AND newest = $2 AND row_count < $3 AND row_count <= $4 AND form = $5
		RETURNING bottom, ids`,
		account, below, db.summarizing.rows, textindex.DocsMax-len(rows), words.Folding).Scan(&bottom, &idsBelow)
	switch {
	case err == nil:
		pages, err = joinBelow(ctx, tx, account, below, pages, len(rows))
		ids = append(ids, idsBelow...)
	case errors.Is(err, pgx.ErrNoRows):
		err = nil
	}
	if err != nil {
		return err
	}

	if _, err := tx.Exec(ctx, `
		INSERT INTO text_units (account_id, newest, bottom, row_count, ids, form) VALUES ($1, $2, $3, $4, $5, $6)`,
		account, newest, bottom, len(ids)/len(uuid{}), ids, words.Folding); err != nil {
		return err
	}

	// Of few rows most pages are empty.
	_, err = tx.Exec(ctx, `
		INSERT INTO text_pages (account_id, page, newest, words)
		SELECT $1, (page - 1)::smallint, $2, words FROM unnest($3::bytea[]) WITH ORDINALITY n(words, page)
		WHERE words <> ''`,
		account, newest, pages)
	crashpoint.Reach(crashpoint.RenewWritten)

	return err
}

// idsOf returns the ids of rows, one after the other.
func idsOf(rows []wire.Row) (ids []byte) {
	for i := range rows {
		id, _ := archive.ParseUUID(rows[i].RequestID)
		ids = append(ids, id[:]...)
	}
	return ids
}

// joinBelow removes the pages of a unit, and returns those of one that has its rows below n others.
func joinBelow(
	ctx context.Context, tx pgx.Tx, account string, newest int64, pages [][]byte, n int,
) (joined [][]byte, err error) {
	found, _ := tx.Query(ctx, `
		DELETE FROM text_pages WHERE account_id = $1 AND newest = $2 RETURNING page, words`, account, newest)

	var b textindex.Builder
	var number int
	var words []byte
	_, err = pgx.ForEachRow(found, []any{&number, &words}, func() error {
		if err := b.Take(number, words, func(doc int) int { return doc + n }); err != nil {
			return damagedIndex(account, newest, err)
		}
		return nil
	})
	for i, page := range pages {
		err = errors.Join(err, b.Take(i, page, func(doc int) int { return doc }))
		joined = append(joined, b.Encode(i))
	}

	return joined, err
}

// textsBetween reads the ids and the texts' hashes of all rows between two order times, newest first.
func (db *DB) textsBetween(
	ctx context.Context, tx pgx.Tx, account string, oldest, newest int64,
) (rows []wire.Row, err error) {
	s, err := db.newScan(ctx, tx, account, &query.Query{})
	if err != nil {
		return nil, err
	}
	s.oldest, s.newest = oldest, newest
	s.visit = func(fill query.Fill) (bool, error) {
		row, err := fill(rowcode.PlaceColumns | 1<<rowcode.ColumnText)
		if err == nil {
			rows = append(rows, *row)
		}
		return true, err
	}

	return rows, s.run(ctx, textindex.DocsMax+1)
}

// indexRows returns the pages of an index of rows.
func (db *DB) indexRows(ctx context.Context, tx pgx.Tx, account string, rows []wire.Row) ([][]byte, error) {
	var b textindex.Builder
	if err := db.readTexts(ctx, tx, account, rows, &b); err != nil {
		return nil, err
	}
	pages := make([][]byte, textindex.Pages)
	for i := range pages {
		pages[i] = b.Encode(i)
	}

	return pages, nil
}

// readTexts adds the texts of rows to an index.
func (db *DB) readTexts(
	ctx context.Context, tx pgx.Tx, account string, rows []wire.Row, b *textindex.Builder,
) error {
	s := &scan{db: db, tx: tx, account: account}
	for from := 0; from < len(rows); from += bodiesStep {
		some := rows[from:min(from+bodiesStep, len(rows))]
		places := make([]place, len(some))
		for i := range some {
			places[i].id, _ = archive.ParseUUID(some[i].RequestID)
		}
		bodies, bases, err := s.bodies(ctx, places)
		if err != nil {
			return err
		}

		var plain []byte
		for i := range places {
			plain, err = db.codec.UnpackBody(bodies[places[i].id], plain, bases.of)
			if err != nil {
				return damaged("the body of record "+places[i].id.String(), err)
			}
			b.Add(from+i, query.ReadContent(ctx, plain).Terms())
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}

	return nil
}

// unit is a unit with what a search needs of it.
type unit struct {
	newest, bottom int64
	rows           int
	pages          map[int][]byte
}

// runTexts is run for a query that looks for words in texts.
func (s *scan) runTexts(ctx context.Context, limit int) error {
	var numbers []int16
	for _, t := range s.query.Terms() {
		numbers = append(numbers, int16(t.Page()))
	}

	after, top := s.query.After, s.newest
	for limit > 0 && !s.done {
		units, err := s.units(ctx, numbers, top)
		if err != nil {
			return err
		}
		for i := 0; i <= len(units) && limit > 0 && !s.done; i++ {
			// Rows between two units, or above the first or below the last.
			bottom := s.oldest
			if i < len(units) {
				bottom = max(units[i].newest+1, bottom)
			} else if len(units) == unitsStep {
				break
			}
			s.ids = nil
			if bottom <= top {
				limit, err = s.runPart(ctx, after, bottom, top, limit)
				if err != nil {
					return err
				}
			}
			if i == len(units) {
				return nil
			}
			limit, err = s.runUnit(ctx, &units[i], after, limit)
			if err != nil {
				return err
			}
			top = units[i].bottom - 1
		}
	}

	return nil
}

// units reads the next units that have rows up to a list time, newest first.
func (s *scan) units(ctx context.Context, numbers []int16, top int64) (units []unit, err error) {
	rows, _ := s.tx.Query(ctx, `
		SELECT u.newest, u.bottom, u.row_count, coalesce(p.page, -1)::smallint, coalesce(p.words, '')
		FROM (SELECT newest, bottom, row_count FROM text_units
			WHERE account_id = $1 AND bottom <= $2 AND newest >= $3 AND form = $6
			ORDER BY newest DESC LIMIT $4) u
		LEFT JOIN text_pages p ON p.account_id = $1 AND p.page = ANY($5) AND p.newest = u.newest
		ORDER BY u.newest DESC`,
		pgx.QueryExecModeCacheDescribe, s.account, top, s.oldest, unitsStep, numbers, words.Folding)

	var u unit
	var number int16
	var words []byte
	_, err = pgx.ForEachRow(rows, []any{&u.newest, &u.bottom, &u.rows, &number, &words}, func() error {
		if len(units) == 0 || units[len(units)-1].newest != u.newest {
			u.pages = make(map[int][]byte)
			units = append(units, u)
		}
		units[len(units)-1].pages[int(number)] = words
		// The next row must not overwrite it.
		words = nil
		return nil
	})

	return units, err
}

// runUnit visits the rows of a unit that may match. It returns what is left of limit.
func (s *scan) runUnit(ctx context.Context, u *unit, after *query.Position, limit int) (left int, err error) {
	docs := s.query.Candidates(func(t textindex.Term, docs *textindex.Docs) {
		err = cmp.Or(err, docs.Keep(u.pages[t.Page()], t))
	})
	if err != nil {
		return limit, damagedIndex(s.account, u.newest, err)
	}

	found := 0
	for i := range u.rows {
		if docs.Has(i) {
			found++
		}
	}
	switch {
	case found == 0:
		return limit, nil
	case found > u.rows/2:
		// Their ids would not help.
		s.ids = nil
	default:
		s.ids, err = s.unitIDs(ctx, u, &docs)
		if err != nil {
			return limit, err
		}
	}

	return s.runPart(ctx, after, max(u.bottom, s.oldest), min(u.newest, s.newest), limit)
}

func damagedIndex(account string, newest int64, err error) error {
	return damaged(fmt.Sprintf("the index of words of %s at %d", account, newest), err)
}

// unitIDs reads the ids of documents of a unit.
func (s *scan) unitIDs(ctx context.Context, u *unit, docs *textindex.Docs) ([]uuid, error) {
	var packed []byte
	err := s.tx.QueryRow(ctx, `SELECT ids FROM text_units WHERE account_id = $1 AND newest = $2`,
		pgx.QueryExecModeCacheDescribe, s.account, u.newest).Scan(&packed)
	ids := []uuid{}
	for i := 0; err == nil && i < u.rows && (i+1)*len(uuid{}) <= len(packed); i++ {
		if docs.Has(i) {
			ids = append(ids, uuid(packed[i*len(uuid{}):]))
		}
	}

	return ids, err
}
