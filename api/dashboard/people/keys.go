package people

import (
	"net/http"
	"slices"

	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// keysView is what the page of keys shows.
type keysView struct {
	Keys   []wire.Key
	New    wire.Key // the key just created; its secret is shown only now
	Secret string
	Error  *wire.Error
}

func (p *pages) keysPage(c *frame.Exchange) error { return p.showKeys(c, http.StatusOK, keysView{}) }

func (p *pages) showKeys(c *frame.Exchange, status int, v keysView) (err error) {
	if v.Keys, err = c.Keys(); err != nil {
		return err
	}

	return c.Show(status, "keys", "Keys", "keys", v)
}

// createKey answers with the page itself and not with a redirect: the secret is shown
// once, and must not appear in an address.
func (p *pages) createKey(c *frame.Exchange) error {
	scope, err := wire.ParseScope(c.PostForm.Get("scope"))
	if err != nil {
		return p.showKeys(c, http.StatusUnprocessableEntity, keysView{Error: wire.AsError(err)})
	}
	secret, k, err := p.keys.CreateKey(c.Context(), c.User.AccountName, c.PostForm.Get("name"), scope)
	if e := wire.AsError(err); err != nil && e.Code == wire.CodeInvalid {
		return p.showKeys(c, e.Status(), keysView{Error: e})
	}
	if err != nil {
		return err
	}

	if err := c.Note(c.Context(), "create key", k.ID, k.Scope.String()+" "+k.Name); err != nil {
		return err
	}

	return p.showKeys(c, http.StatusOK, keysView{New: k, Secret: string(secret)})
}

func (p *pages) revokeKey(c *frame.Exchange) error {
	// The id may be that of another account's key, which must look as if it did not exist.
	keys, err := c.Keys()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(keys, func(k wire.Key) bool { return k.ID == c.PathValue("id") })
	if i < 0 {
		return wire.Errorf(wire.CodeNotFound, "This account has no such key.")
	}

	k := keys[i]
	if _, err := p.keys.RevokeKey(c.Context(), k.ID); err != nil {
		return err
	}
	if err := c.Note(c.Context(), "revoke key", k.ID, k.Name); err != nil {
		return err
	}

	return c.Redirect("/keys", "revoked")
}
