package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"promptspool/api/wire"
)

func (d *Dashboard) peopleRoutes() {
	d.handle("GET /people", wire.RoleOwner, d.peoplePage)
	d.handle("POST /invites", wire.RoleOwner, d.invite)
	d.handle("POST /invites/{id}/delete", wire.RoleOwner, d.uninvite)
	d.handle("POST /people/{id}/role", wire.RoleOwner, d.setRole)
	d.handle("POST /people/{id}/disabled", wire.RoleOwner, d.setDisabled)
	d.handle("POST /people/{id}/reset", wire.RoleOwner, d.makeReset)
}

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

func (d *Dashboard) peoplePage(c *call) error { return d.showPeople(c, http.StatusOK, peopleView{}) }

func (d *Dashboard) loadPeople(c *call, v *peopleView) (err error) {
	if v.People, err = d.People.Members(c.Context(), c.User); err != nil {
		return err
	}
	if v.Invites, err = d.People.Invites(c.Context(), c.User); err != nil {
		return err
	}

	v.SignUp = d.People.SignUp()
	v.Roles = []wire.Role{wire.RoleViewer, wire.RoleEditor, wire.RoleOwner}

	return nil
}

// showPeople answers a form with the page itself and not with a redirect: a link that
// works once must not appear in an address.
func (d *Dashboard) showPeople(c *call, status int, v peopleView) error {
	if err := d.loadPeople(c, &v); err != nil {
		return err
	}

	return d.show(c, status, "people", "People", "people", v)
}

// codeLink returns the address of a page of this server with a code.
func (d *Dashboard) codeLink(c *call, page string, code wire.Secret) string {
	return d.base(c.Request) + page + "?" + url.Values{"code": {string(code)}}.Encode()
}

func (d *Dashboard) invite(c *call) error {
	code, i, err := d.People.Invite(c.Context(), c.User, wire.Role(c.PostForm.Get("role")))
	if err != nil {
		return err
	}

	return d.showPeople(c, http.StatusOK, peopleView{Link: d.codeLink(c, "/sign-up", code), Invited: i})
}

func (d *Dashboard) uninvite(c *call) error {
	if err := d.People.Uninvite(c.Context(), c.User, c.PathValue("id")); err != nil {
		return err
	}

	return c.redirect("/people", "uninvited")
}

func (d *Dashboard) makeReset(c *call) error {
	code, u, err := d.People.MakeReset(c.Context(), c.User, c.PathValue("id"))
	if err != nil {
		return d.peopleFault(c, err)
	}

	return d.showPeople(c, http.StatusOK, peopleView{Link: d.codeLink(c, "/reset-password", code), Reset: &u})
}

func (d *Dashboard) setRole(c *call) error {
	people, err := d.People.Members(c.Context(), c.User)
	if err != nil {
		return err
	}
	u, err := d.People.SetRole(c.Context(), c.User, c.PathValue("id"), wire.Role(c.PostForm.Get("role")))
	if err != nil {
		return d.peopleFault(c, err)
	}

	for _, before := range people {
		if before.ID == u.ID && before.Role != u.Role && u.ID != c.User.ID {
			return d.offering(c, "/people", "",
				undo{Kind: "role", Of: u.ID, Name: u.Email, Was: string(before.Role), Now: string(u.Role)})
		}
	}

	return d.offering(c, "/people", "", undo{Kind: "role", Name: u.Email, Now: string(u.Role)})
}

func (d *Dashboard) setDisabled(c *call) error {
	disabled := c.PostForm.Get("disabled") == "true"
	before, err := d.People.Members(c.Context(), c.User)
	if err != nil {
		return err
	}
	u, err := d.People.SetDisabled(c.Context(), c.User, c.PathValue("id"), disabled)
	switch {
	case err != nil:
		return d.peopleFault(c, err)
	case !disabled:
		return d.offering(c, "/people", "", undo{Kind: "enabled", Name: u.Email})
	}

	// Whom somebody else had disabled is not theirs to let in again.
	was := slices.ContainsFunc(before, func(b wire.User) bool { return b.ID == u.ID && b.DisabledAt != nil })
	if was || u.DisabledAt == nil {
		return d.offering(c, "/people", "", undo{Kind: "disabled", Name: u.Email})
	}

	return d.offering(c, "/people", "",
		undo{Kind: "disabled", Of: u.ID, Name: u.Email, Now: u.DisabledAt.UTC().Format(time.RFC3339Nano)})
}

// peopleFault shows the page again with a change that is not possible, such as removing
// the account's last owner.
func (d *Dashboard) peopleFault(c *call, err error) error {
	if e := wire.AsError(err); e.Code == wire.CodeConflict {
		return d.showPeople(c, e.Status(), peopleView{Error: e})
	}

	return err
}
