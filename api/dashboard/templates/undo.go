package templates

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/frame"
)

func labelText(u frame.Undo) string {
	switch {
	case u.Now == "":
		return fmt.Sprintf("The label %s was deleted (was version %s). Apps requesting it will get 404.", u.Name, u.Was)
	case u.Was == "":
		return fmt.Sprintf("%s is a new label and points to version %s.", u.Name, u.Now)
	}

	return fmt.Sprintf("%s now points to version %s (was %s). Apps requesting it get it within a second.",
		u.Name, u.Now, u.Was)
}

func (p *pages) undoLabel(c *frame.Exchange, u frame.Undo) (to, done string, err error) {
	is, err := versionOf(u.Now)
	if err != nil {
		return "", "", err
	}
	was, err := versionOf(u.Was)
	if err != nil {
		return "", "", err
	}
	err = p.templates.RevertLabel(c.Context(), c.Identity(), u.Of, u.Name, is, was, c.User.Email)

	// A deleted label is created again, and has a new id.
	done = "undone"
	if u.Now == "" {
		done = "relabelled"
	}

	return address.Template("/template", u.Of), done, err
}

// versionOf reads a version of a change; "" is 0.
func versionOf(text string) (int, error) { return strconv.Atoi(cmp.Or(text, "0")) }

func (p *pages) undoArchive(c *frame.Exchange, u frame.Undo) (to, done string, err error) {
	at, err := time.Parse(time.RFC3339Nano, u.Now)
	if err != nil {
		return "", "", err
	}
	err = p.templates.RevertArchive(c.Context(), c.Identity(), u.Of, at, c.User.Email)

	return address.Template("/template", u.Of), "undone", err
}
