package dashboard

import (
	"net/http"
	"slices"

	"promptspool/api/wire"
)

func (d *Dashboard) accountRoutes() {
	d.handle("GET /keys", wire.RoleOwner, d.keysPage)
	d.handle("POST /keys", wire.RoleOwner, d.createKey)
	d.handle("POST /keys/{id}/revoke", wire.RoleOwner, d.revokeKey)
	d.handle("GET /audit", wire.RoleOwner, d.auditPage)
}

// keysView is what the page of keys shows.
type keysView struct {
	Keys   []wire.Key
	New    wire.Key // the key just created; its secret is shown only now
	Secret string
	Error  *wire.Error
}

// keys returns the account's keys, the newest first.
func (d *Dashboard) keys(c *call) ([]wire.Key, error) {
	all, err := d.Keys.Keys(c.Context())
	if err != nil {
		return nil, err
	}

	// Keys are those of all accounts.
	var keys []wire.Key
	for _, k := range slices.Backward(all) {
		if k.AccountID == c.User.AccountID {
			keys = append(keys, k)
		}
	}

	return keys, nil
}

func (d *Dashboard) keysPage(c *call) error { return d.showKeys(c, http.StatusOK, keysView{}) }

func (d *Dashboard) showKeys(c *call, status int, v keysView) (err error) {
	if v.Keys, err = d.keys(c); err != nil {
		return err
	}

	return d.show(c, status, "keys", "Keys", "keys", v)
}

// createKey answers with the page itself and not with a redirect: the secret is shown
// once, and must not appear in an address.
func (d *Dashboard) createKey(c *call) error {
	name, scope := c.PostForm.Get("name"), wire.Scope(c.PostForm.Get("scope"))
	secret, k, err := d.Keys.CreateKey(c.Context(), c.User.AccountName, name, scope)
	if e := wire.AsError(err); err != nil && e.Code == wire.CodeInvalid {
		return d.showKeys(c, e.Status(), keysView{Error: e})
	}
	if err != nil {
		return err
	}

	if err := d.People.Note(c.Context(), c.User, "create key", k.ID, string(k.Scope)+" "+k.Name); err != nil {
		return err
	}

	return d.showKeys(c, http.StatusOK, keysView{New: k, Secret: string(secret)})
}

func (d *Dashboard) revokeKey(c *call) error {
	// The id may be that of another account's key, which must look as if it did not exist.
	keys, err := d.keys(c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(keys, func(k wire.Key) bool { return k.ID == c.PathValue("id") })
	if i < 0 {
		return wire.Errorf(wire.CodeNotFound, "This account has no such key.")
	}

	k := keys[i]
	if _, err := d.Keys.RevokeKey(c.Context(), k.ID); err != nil {
		return err
	}
	if err := d.People.Note(c.Context(), c.User, "revoke key", k.ID, k.Name); err != nil {
		return err
	}

	return c.redirect("/keys", "revoked")
}

const auditPageMax = 50

// auditView is what the page of the audit log shows.
type auditView struct {
	Entries []wire.AuditEntry
	Older   string // the next page holds the entries before this id; "" on the last page
}

func (d *Dashboard) auditPage(c *call) error {
	// One entry more than a page holds shows whether there is another page.
	entries, err := d.People.AuditLog(c.Context(), c.User, c.FormValue("before"), auditPageMax+1)
	if err != nil {
		return err
	}

	v := auditView{Entries: entries}
	if len(entries) > auditPageMax {
		v.Entries, v.Older = entries[:auditPageMax], entries[auditPageMax-1].ID
	}

	// Together, because the keys are read once for each call.
	var actors []*string
	for i := range v.Entries {
		actors = append(actors, &v.Entries[i].Actor)
	}
	if err := d.nameKeys(c, actors...); err != nil {
		return err
	}

	return d.show(c, http.StatusOK, "audit", "Audit log", "audit", v)
}
