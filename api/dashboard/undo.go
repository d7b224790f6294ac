package dashboard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

// undoMax is how long a notice offers to undo what it reports.
const undoMax = 30 * time.Second

// undoGrace is how much longer an undo is accepted, for its way here.
const undoGrace = 5 * time.Second

// undo is a change that was made, and that can be taken back if Of is set. The address of the page that
// reports it has it, sealed with the session: a link that somebody else made offers nothing.
type undo struct {
	Kind string // one of undoKinds
	Of   string // the template, or the id of the person; "" if nothing can be taken back
	Name string // the label, or the email
	Was  string // what it was: a version, a role; "" is none
	Now  string // what it is, if nobody has changed it since
	At   time.Time
}

// undoKind is a kind of change that can be undone.
type undoKind struct {
	text func(u undo) string // what the notice says

	// back takes it back; nil if that is never possible. Then the seal only keeps a link from saying
	// something else.
	back func(d *Dashboard, c *call, u undo) (to string, err error)
}

func undoKinds(kind string) (undoKind, bool) {
	kinds := map[string]undoKind{
		"label":    {labelText, (*Dashboard).undoLabel},
		"archive":  {func(undo) string { return notices["archived"] }, (*Dashboard).undoArchive},
		"role":     {roleText, (*Dashboard).undoRole},
		"disabled": {func(u undo) string { return u.Name + " can no longer sign in." }, (*Dashboard).undoDisabled},
		"enabled":  {func(u undo) string { return u.Name + " can sign in again." }, nil},
		"erased":   {func(u undo) string { return "Deleted: " + u.Now + "." }, nil},
	}
	k, ok := kinds[kind]

	return k, ok
}

func (d *Dashboard) undoRoutes() {
	d.handle("POST /undo", wire.RoleEditor, d.takeBack)
}

// offering returns an address whose page reports a change with the button to undo it. Once that is
// too late, the page says what done names.
func (d *Dashboard) offering(c *call, to, done string, u undo) error {
	u.At = d.Now().UTC()
	return c.redirect(withParameter(to, "undo", c.seal(u)), done)
}

// seal returns the change as an address has it.
func (c *call) seal(u undo) string {
	text := base64.RawURLEncoding.EncodeToString(encoded(u))

	return text + "." + base64.RawURLEncoding.EncodeToString(c.sealOf(text))
}

func (c *call) sealOf(text string) []byte {
	mac := hmac.New(sha256.New, []byte(c.Token))
	mac.Write([]byte("undo " + text))

	return mac.Sum(nil)
}

// unseal reads a change that this session has made.
func (c *call) unseal(sealed string) (u undo, ok bool) {
	text, seal, _ := strings.Cut(sealed, ".")
	mac, err := base64.RawURLEncoding.DecodeString(seal)
	if err != nil || c.Token == "" || !hmac.Equal(mac, c.sealOf(text)) {
		return undo{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)

	return u, err == nil && json.Unmarshal(raw, &u) == nil
}

// offered returns what the page's address offers to undo, "" for nothing, and what its notice says.
func (d *Dashboard) offered(c *call) (sealed, notice string) {
	sealed = c.URL.Query().Get("undo")
	u, ok := c.unseal(sealed)
	k, known := undoKinds(u.Kind)
	if !ok || !known || c.Method != http.MethodGet || d.Now().Sub(u.At) > undoMax {
		return "", ""
	}

	if u.Of == "" {
		sealed = ""
	}

	return sealed, k.text(u)
}

// takeBack undoes a change, unless there was another one since. A label or a role is compared by
// its value alone.
func (d *Dashboard) takeBack(c *call) error {
	u, ok := c.unseal(c.PostForm.Get("undo"))
	k, known := undoKinds(u.Kind)
	if !ok || !known || u.Of == "" {
		return wire.Errorf(wire.CodeInvalid, "This form is not one of ours, or belongs to another session.")
	}
	if d.Now().Sub(u.At) > undoMax+undoGrace {
		return wire.Errorf(wire.CodeConflict, "More than 30 seconds have passed, so it was not undone.")
	}

	to, err := k.back(d, c, u)
	if err != nil {
		return err
	}

	// A label that was deleted is made anew: whoever goes by its id does not find it.
	if u.Kind == "label" && u.Now == "" {
		return c.redirect(to, "relabelled")
	}

	return c.redirect(to, "undone")
}

func labelText(u undo) string {
	switch {
	case u.Now == "":
		return fmt.Sprintf("The label %s was deleted (was version %s). Apps requesting it will get 404.", u.Name, u.Was)
	case u.Was == "":
		return fmt.Sprintf("%s is a new label and points to version %s.", u.Name, u.Now)
	}

	return fmt.Sprintf("%s now points to version %s (was %s). Apps requesting it get it within a second.",
		u.Name, u.Now, u.Was)
}

func roleText(u undo) string {
	was := ""
	if u.Was != "" {
		was = " (was " + u.Was + ")"
	}

	return fmt.Sprintf("%s now has the role %s%s and must sign in again.", u.Name, u.Now, was)
}

func (d *Dashboard) undoLabel(c *call, u undo) (string, error) {
	is, err := versionOf(u.Now)
	if err != nil {
		return "", err
	}
	was, err := versionOf(u.Was)
	if err != nil {
		return "", err
	}
	err = d.Templates.RevertLabel(c.Context(), c.identity(), u.Of, u.Name, is, was, c.User.Email)

	return templateAddress("/template", u.Of), err
}

// versionOf reads a version of a change; "" is 0.
func versionOf(text string) (int, error) {
	if text == "" {
		return 0, nil
	}

	return strconv.Atoi(text)
}

func (d *Dashboard) undoArchive(c *call, u undo) (string, error) {
	at, err := time.Parse(time.RFC3339Nano, u.Now)
	if err != nil {
		return "", err
	}
	err = d.Templates.RevertArchive(c.Context(), c.identity(), u.Of, at, c.User.Email)

	return templateAddress("/template", u.Of), err
}

func (d *Dashboard) undoRole(c *call, u undo) (string, error) {
	return "/people", d.People.RevertRole(c.Context(), c.User, u.Of, wire.Role(u.Now), wire.Role(u.Was))
}

func (d *Dashboard) undoDisabled(c *call, u undo) (string, error) {
	at, err := time.Parse(time.RFC3339Nano, u.Now)
	if err != nil {
		return "", err
	}

	return "/people", d.People.RevertDisabled(c.Context(), c.User, u.Of, at)
}
