package people

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/table"
	"promptspool/api/wire"
)

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
