package dashboard

import (
	"net/http"

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
	New    wire.Key // just made; its secret is shown this once
	Secret string
	Error  *wire.Error
}

// keys are those of the account, the newest first.
func (d *Dashboard) keys(c *call) ([]wire.Key, error) {
	all, err := d.Keys.Keys(c.Context())
	var own []wire.Key
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].AccountID == c.User.AccountID {
			own = append(own, all[i])
		}
	}
	return own, err
}

func (d *Dashboard) keysPage(c *call) error { return d.showKeys(c, http.StatusOK, keysView{}) }

func (d *Dashboard) showKeys(c *call, status int, v keysView) (err error) {
	if v.Keys, err = d.keys(c); err != nil {
		return err
	}
	return d.show(c, status, "keys", "Keys", "keys", v)
}

// createKey answers with the page itself, not with a redirect: the secret must stand in no address and be shown once.
func (d *Dashboard) createKey(c *call) error {
	secret, k, err := d.Keys.CreateKey(c.Context(), c.User.AccountName, c.PostForm.Get("name"), wire.Scope(c.PostForm.Get("scope")))
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
	own, err := d.keys(c)
	if err != nil {
		return err
	}
	for _, k := range own {
		if k.ID != c.PathValue("id") {
			continue
		}
		if _, err := d.Keys.RevokeKey(c.Context(), k.ID); err != nil {
			return err
		}
		if err := d.People.Note(c.Context(), c.User, "revoke key", k.ID, k.Name); err != nil {
			return err
		}
		return c.done("/keys", "revoked")
	}
	return wire.Errorf(wire.CodeNotFound, "This account has no such key.")
}

const auditPageMax = 50

// auditView is what the audit log's page shows.
type auditView struct {
	Entries []wire.AuditEntry
	Older   string // the id below which the next page begins; "" on the last
}

func (d *Dashboard) auditPage(c *call) error {
	entries, err := d.People.AuditLog(c.Context(), c.User, c.FormValue("before"), auditPageMax+1)
	if err != nil {
		return err
	}
	v := auditView{Entries: entries}
	if len(entries) > auditPageMax {
		v.Entries, v.Older = entries[:auditPageMax], entries[auditPageMax-1].ID
	}
	return d.show(c, http.StatusOK, "audit", "Audit log", "audit", v)
}
