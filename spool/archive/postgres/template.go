package postgres

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/postgres/connection"
)

// UpdateTemplate changes one template in one durable transaction; see registry.Store.
//
// Changes of an account's templates wait for each other, at all servers, so change must be
// quick. It must not call the DB.
func (db *DB) UpdateTemplate(
	ctx context.Context, account, name string,
	change func(t *wire.Template) (v *wire.Version, changed bool, err error),
) (wire.Template, error) {
	var head wire.Template
	var refused error // by change, or errUnchanged

	// A change that ran twice might publish twice, so it is not retried if COMMIT may have
	// succeeded.
	err := db.pool.Change(ctx, false, func(tx pgx.Tx) error {
		refused = nil
		u := update{tx: tx, account: account}
		if err := u.load(ctx, name); err != nil {
			return err
		}

		version, changed, err := change(&u.head)
		head = u.head
		if refused = err; err == nil && !changed {
			refused = errUnchanged
		}
		if refused != nil {
			return refused
		}

		err = u.store(ctx, version)
		head = u.head
		return err
	})

	switch {
	case refused == errUnchanged:
		return head, nil
	case refused != nil:
		return wire.Template{}, refused
	case err != nil:
		return wire.Template{}, err
	}
	return head, nil
}

// errUnchanged rolls back a transaction that has nothing to write.
var errUnchanged = errors.New("nothing changed")

// update is one change of a template.
type update struct {
	tx      pgx.Tx
	account string
	head    wire.Template
	last    archive.Registry
}

// load locks the account's registry and reads the template.
func (u *update) load(ctx context.Context, name string) error {
	// There must be a row to lock.
	if _, err := u.tx.Exec(ctx, `
		INSERT INTO registries (account_id, template, version, revision) VALUES ($1, 0, 0, 0)
		ON CONFLICT DO NOTHING`, u.account); err != nil {
		return err
	}
	// Every publisher to the account, at whichever server, waits here until we have committed.
	// So revisions are committed in their order, and a reader of the feed misses none.
	if err := u.tx.QueryRow(ctx, `
		SELECT template, version, revision FROM registries WHERE account_id = $1 FOR UPDATE`, u.account).
		Scan(&u.last.Template, &u.last.Version, &u.last.Revision); err != nil {
		return err
	}

	err := u.tx.QueryRow(ctx, `SELECT head FROM templates WHERE account_id = $1 AND name = $2`, u.account, name).
		Scan(&u.head)
	// Nobody else can add it meanwhile: the row of the registry is locked.
	if errors.Is(err, pgx.ErrNoRows) {
		u.head = u.last.NewTemplate(name)
		return nil
	}

	return err
}

const (
	insertVersion = `
		INSERT INTO template_versions (account_id, template_id, number, version)
		VALUES ($1, $2, $3, $4::json)`

	insertTemplate = `
		INSERT INTO templates (account_id, name, id, revision, head) VALUES ($1, $2, $3, $4, $5::json)
		ON CONFLICT (account_id, name) DO UPDATE SET revision = EXCLUDED.revision, head = EXCLUDED.head`
)

// store writes the version if there is one, the head and the new revision. It also notifies
// the other servers, which PostgreSQL does when the transaction commits.
func (u *update) store(ctx context.Context, v *wire.Version) error {
	u.last.Change(&u.head, v)

	if v != nil {
		version, err := encode(v)
		if err != nil {
			return err
		}
		if _, err := u.tx.Exec(ctx, insertVersion, u.account, v.TemplateID, v.Number, version); err != nil {
			return err
		}
	}

	head, err := encode(u.head)
	if err != nil {
		return err
	}
	if _, err := u.tx.Exec(ctx, insertTemplate,
		u.account, u.head.Name, u.head.ID, int64(u.last.Revision), head); err != nil {
		return err
	}
	// Locked by load, so ids and revisions are given out one after the other.
	if _, err := u.tx.Exec(ctx, `
		UPDATE registries SET template = $2, version = $3, revision = $4 WHERE account_id = $1`,
		u.account, u.last.Template, u.last.Version, int64(u.last.Revision)); err != nil {
		return err
	}

	_, err = u.tx.Exec(ctx, `SELECT pg_notify($1, $2)`, templatesChannel, u.account)
	return err
}

// Template returns a head by its name, else by its decimal id; see registry.Store.
func (db *DB) Template(ctx context.Context, account, ident string) (head wire.Template, err error) {
	none := archive.ErrNoTemplate(ident)
	id, ok := archive.TemplateID(ident)
	if !ok {
		err = db.pool.QueryRow(ctx, none, []any{&head},
			`SELECT head FROM templates WHERE account_id = $1 AND name = $2`, account, ident)
		return head, err
	}

	// One template may have the id of another as its name: the name wins.
	err = db.pool.QueryRow(ctx, none, []any{&head}, `
		SELECT head FROM templates WHERE account_id = $1 AND (name = $2 OR id = $3)
		ORDER BY name = $2 DESC LIMIT 1`, account, ident, id)

	return head, err
}

// TemplateName returns the name of the template with an id; see registry.Store.
func (db *DB) TemplateName(ctx context.Context, account string, id int64) (name string, err error) {
	err = db.pool.QueryRow(ctx, archive.ErrNoTemplateID(id), []any{&name},
		`SELECT name FROM templates WHERE account_id = $1 AND id = $2`, account, id)
	return name, err
}

// TemplateVersion returns one version; see registry.Store.
func (db *DB) TemplateVersion(ctx context.Context, account string, id int64, number int) (v wire.Version, err error) {
	err = db.pool.QueryRow(ctx, archive.ErrNoVersion(id, number), []any{&v}, `
		SELECT version FROM template_versions
		WHERE account_id = $1 AND template_id = $2 AND number = $3`, account, id, number)
	return v, err
}

// Templates returns one page of heads and how many match; see registry.Store. It reads every
// head of the account.
func (db *DB) Templates(ctx context.Context, account string, q wire.TemplateListQuery) ([]wire.Template, int, error) {
	heads, err := connection.QueryRows(ctx, db.pool, func(t *wire.Template) []any { return []any{t} },
		`SELECT head FROM templates WHERE account_id = $1`, account)
	if err != nil {
		return nil, 0, err
	}

	// Filtered here: the rules are those of the wire type, and an account has few templates.
	heads = slices.DeleteFunc(heads, func(t wire.Template) bool { return !q.Match(&t) })
	page, total := q.PageOf(heads)

	return page, total, nil
}

// TemplateChanges returns which templates changed after a revision; see registry.Store. It
// uses a single statement, so that it sees one moment.
func (db *DB) TemplateChanges(ctx context.Context, account string, since uint64) (wire.Changes, error) {
	type row struct {
		now      uint64
		name     *string // nil in the only row of a registry without changes
		revision *uint64
	}
	rows, err := connection.QueryRows(ctx, db.pool,
		func(r *row) []any { return []any{&r.now, &r.name, &r.revision} }, `
		SELECT r.revision, t.name, t.revision FROM registries r
		LEFT JOIN templates t ON t.account_id = r.account_id AND t.revision > $2
		WHERE r.account_id = $1
		ORDER BY t.revision LIMIT $3`,
		account, int64(min(since, math.MaxInt64)), archive.TemplateChangesMax)
	if err != nil {
		return wire.Changes{}, err
	}

	// The revision of the last change that is listed: it is the registry's own, unless more
	// changes follow than one answer holds.
	changes := wire.Changes{Success: true, Names: []string{}}
	for _, r := range rows {
		if changes.Revision = r.now; r.name != nil {
			changes.Names = append(changes.Names, *r.name)
			changes.Revision = *r.revision
		}
	}
	changes.Reset = len(changes.Names) == 0 && since > changes.Revision

	return changes, nil
}
