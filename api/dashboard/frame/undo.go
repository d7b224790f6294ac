package frame

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// undoMax is how long a notice offers to undo what it reports.
const undoMax = 30 * time.Second

// undoGrace is how much longer an undo is accepted, for its way here.
const undoGrace = 5 * time.Second

// Undo is a change that was made, and that can be taken back if Of is set. The address of
// the page that reports it has it, sealed with the session and its project: a link that
// another person made offers nothing.
type Undo struct {
	Kind string // one of those of the sections
	Of   string // the template, or the id of the person; "" if nothing can be taken back
	Name string // the label, or the email
	Was  string // what it was: a version, a role; "" is none
	Now  string // what it is, if it has not changed since
	At   time.Time
}

// Undoing is a kind of change that can be undone.
type Undoing struct {
	Text func(u Undo) string // what the notice says

	// Back takes it back, and returns the page to show then, with the word of its notice. It is nil if
	// that is never possible: then the seal only keeps a link from saying something else.
	Back func(c *Exchange, u Undo) (to, done string, err error)
}

// Offer redirects to a page that reports a change with the button to undo it. Once that is too late, the
// page says what done names.
func (c *Exchange) Offer(to, done string, u Undo) error {
	u.At = c.Now().UTC()
	return c.Redirect(address.With(to, "undo", c.seal(u)), done)
}

// seal returns the change as an address has it.
func (c *Exchange) seal(u Undo) string {
	// Texts cannot fail to encode.
	raw, _ := jsonscan.Marshal(u)
	text := base64.RawURLEncoding.EncodeToString(raw)

	return text + "." + base64.RawURLEncoding.EncodeToString(c.sealOf(text))
}

func (c *Exchange) sealOf(text string) []byte {
	mac := hmac.New(sha256.New, []byte(c.Token))
	mac.Write([]byte("undo " + c.User.AccountID + " " + text))

	return mac.Sum(nil)
}

// unseal reads a change that this session has made.
func (c *Exchange) unseal(sealed string) (u Undo, ok bool) {
	text, seal, _ := strings.Cut(sealed, ".")
	mac, err := base64.RawURLEncoding.DecodeString(seal)
	if err != nil || c.Token == "" || !hmac.Equal(mac, c.sealOf(text)) {
		return Undo{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)

	return u, err == nil && json.Unmarshal(raw, &u) == nil
}

// offered returns what the page's address offers to undo, "" for nothing, and what its notice says.
func (c *Exchange) offered() (sealed, notice string) {
	sealed = c.URL.Query().Get("undo")
	u, ok := c.unseal(sealed)
	k, known := c.frame.undos[u.Kind]
	if !ok || !known || c.Method != http.MethodGet || c.Now().Sub(u.At) > undoMax {
		return "", ""
	}

	if u.Of == "" {
		sealed = ""
	}

	return sealed, k.Text(u)
}

// takeBack undoes a change, unless there was another one since. A label or a role is compared by
// its value alone.
func (c *Exchange) takeBack() error {
	u, ok := c.unseal(c.PostForm.Get("undo"))
	k, known := c.frame.undos[u.Kind]
	if !ok || !known || u.Of == "" {
		return wire.Errorf(wire.CodeInvalid, "This form is not one of ours, or belongs to another session or project.")
	}
	if c.Now().Sub(u.At) > undoMax+undoGrace {
		return wire.Errorf(wire.CodeConflict, "More than 30 seconds have passed, so it was not undone.")
	}

	to, done, err := k.Back(c, u)
	if err != nil {
		return err
	}

	return c.Redirect(to, done)
}
