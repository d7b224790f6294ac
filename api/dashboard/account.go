package dashboard

import (
	"net/http"

	"promptspool/api/wire"
)

func (d *Dashboard) accountRoutes() {
	d.handle("GET /keys", wire.RoleOwner, d.keysPage)
	d.handle("POST /keys", wire.RoleOwner, d.createKey)
	d.handle("POST /keys/{id}/revoke", wire.RoleOwner, d.revokeKey)
	d.handle("GET /people", wire.RoleOwner, d.peoplePage)
	d.handle("POST /invites", wire.RoleOwner, d.invite)
	d.handle("POST /invites/{id}/delete", wire.RoleOwner, d.uninvite)
	d.handle("POST /people/{id}/role", wire.RoleOwner, d.setRole)
	d.handle("POST /people/{id}/disabled", wire.RoleOwner, d.setDisabled)
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

// peopleView is what the page of people shows.
type peopleView struct {
	People  []wire.User
	Invites []wire.Invite
	SignUp  wire.SignUp
	Code    string // of an invite just made; shown this once
	Invited wire.Invite
	Roles   []wire.Role
}

func (d *Dashboard) peoplePage(c *call) error { return d.showPeople(c, peopleView{}) }

func (d *Dashboard) showPeople(c *call, v peopleView) (err error) {
	if v.People, err = d.People.Members(c.Context(), c.User); err != nil {
		return err
	}
	if v.Invites, err = d.People.Invites(c.Context(), c.User); err != nil {
		return err
	}
	v.SignUp, v.Roles = d.People.SignUp(), []wire.Role{wire.RoleViewer, wire.RoleEditor, wire.RoleOwner}
	return d.show(c, http.StatusOK, "people", "People", "people", v)
}

func (d *Dashboard) invite(c *call) error {
	code, i, err := d.People.Invite(c.Context(), c.User, wire.Role(c.PostForm.Get("role")))
	if err != nil {
		return err
	}
	return d.showPeople(c, peopleView{Code: string(code), Invited: i})
}

func (d *Dashboard) uninvite(c *call) error {
	if err := d.People.Uninvite(c.Context(), c.User, c.PathValue("id")); err != nil {
		return err
	}
	return c.done("/people", "uninvited")
}

func (d *Dashboard) setRole(c *call) error {
	if _, err := d.People.SetRole(c.Context(), c.User, c.PathValue("id"), wire.Role(c.PostForm.Get("role"))); err != nil {
		return err
	}
	return c.done("/people", "role")
}

func (d *Dashboard) setDisabled(c *call) error {
	disabled := c.PostForm.Get("disabled") == "true"
	if _, err := d.People.SetDisabled(c.Context(), c.User, c.PathValue("id"), disabled); err != nil {
		return err
	}
	if disabled {
		return c.done("/people", "disabled")
	}
	return c.done("/people", "enabled")
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
