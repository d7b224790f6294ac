// Package people has the dashboard's pages for the owners of an account: its people, its keys, and what
// all of them did.
package people

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/table"
	"promptspool/api/wire"
)

// peopleView is what the page of people shows.
type peopleView struct {
	People  []wire.User
	Invites []wire.Invite
	SignUp  wire.SignUp
	Link    string      // a new link, for Reset or else for Invited; shown only now
	Reset   *wire.User  // whose password the link resets
	Invited wire.Invite // the invite that the link accepts
	Roles   []wire.Role
	Error   *wire.Error
}

func (p *pages) peoplePage(c *frame.Exchange) error {
	return p.showPeople(c, http.StatusOK, peopleView{})
}

// showPeople answers a form with the page itself and not with a redirect: a link that
// works once must not appear in an address.
func (p *pages) showPeople(c *frame.Exchange, status int, v peopleView) (err error) {
	v.People, err = p.people.Members(c.Context(), c.User)
	if err != nil {
		return err
	}
	v.Invites, err = p.people.Invites(c.Context(), c.User)
	if err != nil {
		return err
	}
	v.SignUp, v.Roles = p.people.SignUp(), wire.Roles

	return c.Show(status, "people", "People", "people", v)
}

// codeLink returns the address of a page of this server with a code.
func codeLink(c *frame.Exchange, page string, code wire.Secret) string {
	return c.Base() + page + "?" + url.Values{"code": {string(code)}}.Encode()
}

func (p *pages) invite(c *frame.Exchange) error {
	code, i, err := p.people.Invite(c.Context(), c.User, wire.Role(c.PostForm.Get("role")))
	if err != nil {
		return err
	}

	return p.showPeople(c, http.StatusOK, peopleView{Link: codeLink(c, "/sign-up", code), Invited: i})
}

func (p *pages) uninvite(c *frame.Exchange) error {
	if err := p.people.Uninvite(c.Context(), c.User, c.PathValue("id")); err != nil {
		return err
	}

	return c.Redirect("/people", "uninvited")
}

func (p *pages) makeReset(c *frame.Exchange) error {
	code, u, err := p.people.MakeReset(c.Context(), c.User, c.PathValue("id"))
	if err != nil {
		return p.peopleFault(c, err)
	}

	return p.showPeople(c, http.StatusOK, peopleView{Link: codeLink(c, "/reset-password", code), Reset: &u})
}

func (p *pages) setRole(c *frame.Exchange) error {
	_, err := p.people.SetRole(c.Context(), c.User, c.PathValue("id"), wire.Role(c.PostForm.Get("role")))
	if err != nil {
		return p.peopleFault(c, err)
	}

	return c.Redirect("/people", "role")
}

func (p *pages) setDisabled(c *frame.Exchange) error {
	disabled := c.PostForm.Get("disabled") == "true"
	if _, err := p.people.SetDisabled(c.Context(), c.User, c.PathValue("id"), disabled); err != nil {
		return p.peopleFault(c, err)
	}
	if disabled {
		return c.Redirect("/people", "disabled")
	}

	return c.Redirect("/people", "enabled")
}

// peopleFault shows the page again with a change that is not possible, such as removing
// the account's last owner.
func (p *pages) peopleFault(c *frame.Exchange, err error) error {
	if e := wire.AsError(err); e.Code == wire.CodeConflict {
		return p.showPeople(c, e.Status(), peopleView{Error: e})
	}

	return err
}

// pages are the pages for the owners of an account.
type pages struct {
	people frame.People
	keys   wire.Keys
}

//go:embed *.html
var html embed.FS

// Pages returns the pages for the owners of an account.
func Pages(people frame.People, keys wire.Keys) frame.Section {
	p := &pages{people, keys}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /people", Page: p.peoplePage},
			{Pattern: "POST /invites", Page: p.invite},
			{Pattern: "POST /invites/{id}/delete", Page: p.uninvite},
			{Pattern: "POST /people/{id}/role", Page: p.setRole},
			{Pattern: "POST /people/{id}/disabled", Page: p.setDisabled},
			{Pattern: "POST /people/{id}/reset", Page: p.makeReset},

			{Pattern: "GET /keys", Page: p.keysPage},
			{Pattern: "POST /keys", Page: p.createKey},
			{Pattern: "POST /keys/{id}/rotate", Page: p.rotateKey},
			{Pattern: "POST /keys/{id}/revoke", Page: p.revokeKey},
			{Pattern: "GET /audit", Page: p.auditPage},
			{Pattern: "GET /audit/export", Page: p.exportAudit},
		},
		Notices: map[string]string{
			"role":      "The role is changed. They must sign in again.",
			"disabled":  "They can no longer sign in.",
			"enabled":   "They can sign in again.",
			"revoked":   "The key is revoked. Calls with it are now rejected.",
			"uninvited": "The invite is revoked. Its link no longer works.",
		},
	}
}

// keysView is what the page of keys shows.
type keysView struct {
	Order  table.Order
	Keys   []wire.Key
	New    wire.Key // the key just created; its secret is shown only now
	Secret string
	Old    *wire.Key // the key that the new one replaces
	Error  *wire.Error

	// The form for a new key shows what was typed, and what is wrong with it.
	Typed   url.Values
	Refused *wire.Error
}

// Has reports whether the form for a new key has a right checked.
func (v keysView) Has(right string) bool { return slices.Contains(v.Typed["right"], right) }

// Logs reports whether the new key may log calls.
func (v keysView) Logs() bool { return v.New.Scope&wire.ScopeLog != 0 }

// keyColumns are what the keys can be sorted by.
var keyColumns = table.Columns[wire.Key]{
	"created": func(k *wire.Key) float64 { return table.At(&k.CreatedAt) },
	"used":    func(k *wire.Key) float64 { return table.At(k.LastUsedAt) },
}

func (p *pages) keysPage(c *frame.Exchange) error { return p.showKeys(c, http.StatusOK, keysView{}) }

func (p *pages) showKeys(c *frame.Exchange, status int, v keysView) (err error) {
	v.Keys, err = c.Keys()
	if err != nil {
		return err
	}
	v.Order = table.Read("/keys", c.URL.Query())
	table.Sort(v.Order, v.Keys, keyColumns)
	if v.Typed == nil {
		v.Typed = url.Values{"scope": {wire.ScopeApp.String()}}
	}

	return c.Show(status, "keys", "Keys", "keys", v)
}

func (p *pages) createKey(c *frame.Exchange) error {
	secret, k, err := p.makeKey(c)
	return p.showMade(c, keysView{New: k, Secret: string(secret)}, k, "create key", err)
}

// showMade answers with the page itself and not with a redirect: the secret is shown once, and must
// not appear in an address. It notes what was done to a key, or shows the error.
func (p *pages) showMade(c *frame.Exchange, v keysView, k wire.Key, action string, err error) error {
	switch e := wire.AsError(err); {
	case wire.IsCode(err, wire.CodeInvalid):
		return p.showKeys(c, e.Status(), keysView{Typed: c.PostForm, Refused: e})
	case wire.IsCode(err, wire.CodeConflict):
		return p.showKeys(c, e.Status(), keysView{Error: e})
	case err != nil:
		return err
	}

	if err := c.Note(c.Context(), action, k.ID, k.AuditDetail()); err != nil {
		return err
	}

	return p.showKeys(c, http.StatusOK, v)
}

// makeKey makes the key that a form describes. Its rights are those of the preset or, without
// one, those that are checked.
func (p *pages) makeKey(c *frame.Exchange) (wire.Secret, wire.Key, error) {
	rights := strings.Join(c.PostForm["right"], ",")
	scope, err := wire.ParseScope(cmp.Or(c.PostForm.Get("scope"), rights))
	if err != nil {
		return "", wire.Key{}, err
	}
	end, err := wire.ParseKeyEnd(strings.TrimSpace(c.PostForm.Get("expires")), c.Now())
	if err != nil {
		return "", wire.Key{}, err
	}

	return p.keys.CreateKey(c.Context(), wire.NewKey{
		Account:   c.User.AccountName,
		Name:      c.PostForm.Get("name"),
		Scope:     scope,
		Prefix:    c.PostForm.Get("prefix"),
		ExpiresAt: end,
	})
}

func (p *pages) rotateKey(c *frame.Exchange) error {
	k, err := ownKey(c)
	if err != nil {
		return err
	}
	overlap, err := time.ParseDuration(c.PostForm.Get("overlap"))
	if err != nil {
		return wire.Invalid(wire.FieldError{Field: "overlap", Reason: "must be a duration such as 24h"})
	}

	secret, made, old, err := p.keys.RotateKey(c.Context(), k.ID, overlap)
	return p.showMade(c, keysView{New: made, Secret: string(secret), Old: &old}, old, "rotate key", err)
}

func (p *pages) revokeKey(c *frame.Exchange) error {
	k, err := ownKey(c)
	if err != nil {
		return err
	}

	if _, err := p.keys.RevokeKey(c.Context(), k.ID); err != nil {
		return err
	}
	return c.Done("revoke key", k.ID, k.Name, "/keys", "revoked")
}

// ownKey returns the key that the path names. One of another account looks as if it did not
// exist.
func ownKey(c *frame.Exchange) (wire.Key, error) {
	keys, err := c.Keys()
	if err != nil {
		return wire.Key{}, err
	}
	i := slices.IndexFunc(keys, func(k wire.Key) bool { return k.ID == c.PathValue("id") })
	if i < 0 {
		return wire.Key{}, wire.Errorf(wire.CodeNotFound, "This project has no such key.")
	}

	return keys[i], nil
}

const (
	auditPageMax = 50
	auditStep    = 500    // entries that are read at a time
	auditReadMax = 20_000 // entries that one page looks at
)

// auditView is what the page of the audit log shows.
type auditView struct {
	Typed   url.Values // the filter
	Entries []wire.AuditEntry
	Older   string // address of the next page; "" on the last page
	Export  string // address of everything that the filter finds
	Error   *wire.Error
}

// auditFilter narrows down the audit log.
type auditFilter struct {
	text         string // in any column, in lower case
	since, until time.Time
}

// readAuditFilter reads the filter in an address. Its dates are days in the reader's zone.
func readAuditFilter(c *frame.Exchange) (f auditFilter, err error) {
	f.text = strings.ToLower(strings.TrimSpace(c.FormValue("q")))
	for name, at := range map[string]*time.Time{"since": &f.since, "until": &f.until} {
		day := c.FormValue(name)
		if day == "" {
			continue
		}
		*at, err = time.ParseInLocation(time.DateOnly, day, c.Filter(nil).Zone())
		if err != nil {
			return f, wire.Invalid(wire.FieldError{Field: name, Reason: "must be a date such as 2026-11-24"})
		}
	}
	if !f.until.IsZero() {
		// The whole day counts.
		f.until = f.until.AddDate(0, 0, 1)
	}

	return f, nil
}

// finds reports whether the filter finds an entry, whose keys are named already.
func (f *auditFilter) finds(e *wire.AuditEntry) bool {
	columns := strings.Join([]string{e.Actor, e.Action, e.Target, e.Detail, e.From}, "\n")
	return strings.Contains(strings.ToLower(columns), f.text)
}

// readAudit calls take with what the filter finds, newest first, from below the id before
// ("" for the newest), until take returns false or most entries were read. It returns the
// last id that it looked at; "" if there is no older one.
func (p *pages) readAudit(
	c *frame.Exchange, f auditFilter, before string, most int,
	take func(wire.AuditEntry) (more bool, err error),
) (last string, err error) {
	if before == "" && !f.until.IsZero() {
		before = wire.NewIDAt(f.until)
	}

	for read := 0; read < most; read += auditStep {
		entries, err := p.people.AuditLog(c.Context(), c.User, before, auditStep)
		if err != nil {
			return "", err
		}
		// Together, because the keys are read once for each step.
		var actors []*string
		for i := range entries {
			actors = append(actors, &entries[i].Actor)
		}
		if err := c.NameKeys(actors...); err != nil {
			return "", err
		}

		for i := range entries {
			before = entries[i].ID
			if entries[i].At.Before(f.since) {
				return "", nil
			}
			if !f.finds(&entries[i]) {
				continue
			}
			if more, err := take(entries[i]); !more || err != nil {
				return before, err
			}
		}
		if len(entries) < auditStep {
			return "", nil
		}
	}

	return before, nil
}

func (p *pages) auditPage(c *frame.Exchange) error {
	query := address.Some(c.URL.Query(), "q", "since", "until")
	v := auditView{Typed: query, Export: address.Of("/audit/export", query)}
	f, err := readAuditFilter(c)
	if err != nil {
		v.Error = wire.AsError(err)
		return c.Show(v.Error.Status(), "audit", "Audit log", "audit", v)
	}

	last, err := p.readAudit(c, f, c.FormValue("before"), auditReadMax,
		func(e wire.AuditEntry) (bool, error) {
			v.Entries = append(v.Entries, e)
			return len(v.Entries) < auditPageMax, nil
		})
	if err != nil {
		return err
	}
	if last != "" {
		query.Set("before", last)
		v.Older = address.Of("/audit", query)
	}

	title := frame.Title(query.Get("q"), query.Get("since"), query.Get("until"), "Audit log")

	return c.Show(http.StatusOK, "audit", title, "audit", v)
}

// exportAudit answers with everything that the filter finds, one JSON object a line.
func (p *pages) exportAudit(c *frame.Exchange) error {
	f, err := readAuditFilter(c)
	if err != nil {
		return err
	}
	if err := c.Note(c.Context(), "export audit log", "jsonl", f.text); err != nil {
		return err
	}

	write := func(ctx context.Context, w io.Writer) error {
		// The request's own context has ended by now.
		later := *c
		later.Request = c.WithContext(ctx)
		lines := json.NewEncoder(w)
		lines.SetEscapeHTML(false)
		_, err := p.readAudit(&later, f, "", int(wire.AuditMost),
			func(e wire.AuditEntry) (bool, error) { return true, lines.Encode(e) })
		return err
	}

	return c.SendFile("audit-"+c.Now().UTC().Format(time.DateOnly)+".jsonl", "application/x-ndjson", write)
}
