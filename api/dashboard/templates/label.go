package templates

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
	"promptspool/api/words"
)

// newLabel returns what is asked before a template gets a label of a new name. It is "" if there is an
// answer: the name exists in the project, it was agreed to, or there is none with which it could be
// confused.
func (p *pages) newLabel(c *frame.Exchange, head templateHead, name string) (question string, err error) {
	if name == "" || name == c.PostForm.Get("agreed") || head.labelled(name) >= 0 {
		return "", nil
	}
	list, err := p.templates.List(c.Context(), c.Identity(), wire.TemplateListQuery{PerPage: wire.PageItemsMax})
	if err != nil {
		return "", err
	}

	known := wire.LabelNames(list.Items)
	if len(known) == 0 || slices.Contains(known, name) {
		return "", nil
	}

	slices.Sort(known)
	question = fmt.Sprintf("Create the new label %s? Existing: %s.", name, strings.Join(known, ", "))
	if near := words.Closest(name, known); len(near) > 0 {
		question += " Did you mean " + near[0] + "?"
	}

	return question, nil
}

// labelled returns the index of a label of the template, or -1.
func (h templateHead) labelled(name string) int {
	return slices.IndexFunc(h.Labels, func(l wire.Label) bool { return l.Name == name })
}

// moveLabel points a label to a version. One that points to another is moved from the page that compares
// both. A version that cannot be rendered is shown first, with a button that moves the label anyway, and
// so is a question about a new label.
func (p *pages) moveLabel(c *frame.Exchange, head templateHead) error {
	w, err := readLabel(c)
	if err != nil {
		return err
	}

	version := strconv.Itoa(w.Version)
	i := head.labelled(w.Name)
	if i >= 0 && head.Labels[i].Version != w.Version && c.PostForm.Get("compared") == "" {
		from := strconv.Itoa(head.Labels[i].Version)
		return c.Redirect(
			address.Template("/template/compare", head.Name, "a", from, "b", version, "label", w.Name), "")
	}

	// Versions that do not exist are left to CreateLabel, which explains them.
	exists := w.Version >= 1 && w.Version <= head.Latest() && head.DeletedAt == nil
	if exists && c.PostForm.Get("anyway") == "" {
		selector := wire.Selector{Version: w.Version}
		findings, err := p.templates.FindingsOf(c.Context(), c.Identity(), head.Name, selector)
		if err != nil {
			return err
		}
		question, err := p.newLabel(c, head, w.Name)
		if err != nil {
			return err
		}
		if len(findings) > 0 || question != "" {
			head.Tab, head.Shown = "text", w.Version
			v := templateView{templateHead: head, NotMoved: w.Name, Question: question}
			return p.showTemplate(c, http.StatusUnprocessableEntity, v)
		}
	}

	placed, err := p.templates.CreateLabel(c.Context(), c.Identity(), head.Name, w, c.User.Email)
	if err != nil {
		return err
	}

	to := address.Template("/template", head.Name, "v", version)
	if placed.Was == w.Version {
		return c.Redirect(to, "label")
	}

	was := ""
	if placed.Was > 0 {
		was = strconv.Itoa(placed.Was)
	}

	return c.Offer(to, "label",
		frame.Undo{Kind: "label", Of: head.Name, Name: w.Name, Was: was, Now: version})
}

// readLabel reads a label's form by the rules of the API.
func readLabel(c *frame.Exchange) (wire.LabelWrite, error) {
	// 0 is refused below.
	number, _ := strconv.Atoi(c.PostForm.Get("version"))
	object, err := wire.ParseObject(encoded(map[string]any{
		"name":                  c.PostForm.Get("label"),
		"prompt_version_number": number,
	}))
	if err != nil {
		return wire.LabelWrite{}, err
	}

	return wire.Decode[wire.LabelWrite](object)
}

func (p *pages) deleteLabel(c *frame.Exchange, head templateHead) error {
	name := c.PostForm.Get("label")
	// The label may have been deleted in another tab.
	i := head.labelled(name)
	if i < 0 {
		return wire.Errorf(wire.CodeNotFound, "The template no longer has this label.")
	}

	label := head.Labels[i]
	if err := p.templates.DeleteLabel(c.Context(), c.Identity(), label.ID, c.User.Email); err != nil {
		return err
	}

	return c.Offer(address.Template("/template", head.Name), "unlabelled",
		frame.Undo{Kind: "label", Of: head.Name, Name: name, Was: strconv.Itoa(label.Version)})
}

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
