package frame

import (
	"cmp"
	"slices"

	"promptspool/api/dashboard/address"
	"promptspool/api/wire"
)

// A session has one project open, which all its pages show. To open another one is a form of the
// menu, or a link with the parameter "project" to any page.

// Projects returns the projects that the reader may open, by name.
func (c *Exchange) Projects() []wire.Membership {
	return slices.SortedFunc(slices.Values(c.User.Projects), func(a, b wire.Membership) int {
		return cmp.Compare(a.AccountName, b.AccountName)
	})
}

// openLink opens the project that a link names, and shows the rest of the link's address.
func (c *Exchange) openLink(project string) error {
	if _, err := c.frame.People.Open(c.Context(), c.SignedIn, project); err != nil {
		return err
	}

	query := c.URL.Query()
	query.Del("project")

	return c.Redirect(address.Of(c.URL.EscapedPath(), query), "")
}

// openProject opens the project that was chosen in the menu.
func (c *Exchange) openProject() error {
	if _, err := c.frame.People.Open(c.Context(), c.SignedIn, c.PostForm.Get("project")); err != nil {
		return err
	}

	return c.Redirect(localAddress(c.PostForm.Get("back")), "")
}

// otherProject rejects a form of a page that shows another project than the one that is open.
func (c *Exchange) otherProject(made string) error {
	return wire.Errorf(wire.CodeConflict, "This form is of the project %s, but meanwhile %s was opened, in another "+
		"tab or window. Nothing was changed. Open %s again there, then go back here and send the form once more.",
		made, c.User.AccountName, made)
}
