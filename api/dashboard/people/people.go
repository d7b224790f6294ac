// Package people has the dashboard's pages for the owners of an account: its people, its keys, and what
// all of them did.
package people

import (
	"embed"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"promptspool/api/dashboard/frame"
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
	people, err := p.people.Members(c.Context(), c.User)
	if err != nil {
		return err
	}
	u, err := p.people.SetRole(c.Context(), c.User, c.PathValue("id"), wire.Role(c.PostForm.Get("role")))
	if err != nil {
		return p.peopleFault(c, err)
	}

	undo := frame.Undo{Kind: "role", Name: u.Email, Now: string(u.ByHand())}
	for _, before := range people {
		if before.ID == u.ID && before.ByHand() != u.ByHand() && u.ID != c.User.ID {
			undo.Of, undo.Was = u.ID, string(before.ByHand())
		}
	}

	return c.Offer("/people", "", undo)
}

func (p *pages) setDisabled(c *frame.Exchange) error {
	disabled := c.PostForm.Get("disabled") == "true"
	before, err := p.people.Members(c.Context(), c.User)
	if err != nil {
		return err
	}
	u, err := p.people.SetDisabled(c.Context(), c.User, c.PathValue("id"), disabled)
	switch {
	case err != nil:
		return p.peopleFault(c, err)
	case !disabled:
		return c.Offer("/people", "", frame.Undo{Kind: "enabled", Name: u.Email})
	}

	// They cannot enable a person whom another had disabled.
	undo := frame.Undo{Kind: "disabled", Name: u.Email}
	was := slices.ContainsFunc(before, func(b wire.User) bool { return b.ID == u.ID && b.DisabledAt != nil })
	if !was && u.DisabledAt != nil {
		undo.Of, undo.Now = u.ID, u.DisabledAt.UTC().Format(disabledAt)
	}

	return c.Offer("/people", "", undo)
}

// peopleFault shows the page again with a change that is not possible, such as removing
// the account's last owner.
func (p *pages) peopleFault(c *frame.Exchange, err error) error {
	if e := wire.AsError(err); e.Code == wire.CodeConflict {
		return p.showPeople(c, e.Status(), peopleView{Error: e})
	}

	return err
}

func roleText(u frame.Undo) string {
	was := ""
	if u.Was != "" {
		was = " (was " + u.Was + ")"
	}

	return fmt.Sprintf("%s now has the role %s%s and must sign in again.", u.Name, u.Now, was)
}

// undoRole does not notice changes that led back to the role.
func (p *pages) undoRole(c *frame.Exchange, u frame.Undo) (to, done string, err error) {
	still := func(m wire.User) bool { return string(m.ByHand()) == u.Now }

	return "/people", "undone", p.people.RevertRole(c.Context(), c.User, u.Of, wire.Role(u.Was), still)
}

func disabledText(u frame.Undo) string { return u.Name + " can no longer sign in." }

// undoDisabled enables a person, unless they were enabled since, or disabled again.
func (p *pages) undoDisabled(c *frame.Exchange, u frame.Undo) (to, done string, err error) {
	still := func(m wire.User) bool { return m.DisabledAt != nil && m.DisabledAt.UTC().Format(disabledAt) == u.Now }

	return "/people", "undone", p.people.RevertDisabled(c.Context(), c.User, u.Of, still)
}

// disabledAt is how an undo has the moment, in the microseconds that every database keeps.
const disabledAt = "2006-01-02T15:04:05.000000"

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
			"revoked":   "The key is revoked. Calls with it are now rejected.",
			"uninvited": "The invite is revoked. Its link no longer works.",
		},
		Undos: map[string]frame.Undoing{
			"role":     {Text: roleText, Back: p.undoRole},
			"disabled": {Text: disabledText, Back: p.undoDisabled},
			"enabled":  {Text: func(u frame.Undo) string { return u.Name + " can sign in again." }},
		},
	}
}
