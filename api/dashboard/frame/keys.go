package frame

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
)

// The first key of a project is made when its founder signs up. For a while their browser keeps it, so
// that the page that waits for a first call shows it even after it is loaded again.
const firstKeyKept = time.Hour

// firstKeyCookie names the cookie with the latest project and its key. Its prefix is a session's.
func (c *Exchange) firstKeyCookie() string { return c.frame.cookie.Name + "-key" }

// firstKey returns the first key of the project that is open, if the browser keeps it, or "".
func (c *Exchange) firstKey() string {
	if cookie, err := c.Cookie(c.firstKeyCookie()); err == nil {
		if key, isOpen := strings.CutPrefix(cookie.Value, c.User.AccountID+"."); isOpen {
			return key
		}
	}
	return ""
}

func (c *Exchange) rememberFirstKey(key wire.Secret) {
	c.Remember(c.firstKeyCookie(), c.User.AccountID+"."+string(key), firstKeyKept)
}

// makeFirstKey shows the founder of a project a key. setUp: the project is the server's first.
func (c *Exchange) makeFirstKey(setUp bool) error {
	if key := c.frame.PrintedKey; setUp && key != "" {
		c.rememberFirstKey(key)
		return nil
	}

	secret, k, err := c.frame.Keys.CreateKey(c.Context(), wire.NewKey{
		Account: c.User.AccountName, Name: "first key", Scope: wire.ScopeApp,
	})
	if err != nil {
		return err
	}
	c.rememberFirstKey(secret)

	return c.Note(c.Context(), "create key", k.ID, k.AuditDetail())
}

// firstCall is a way to log a first call, to be pasted.
type firstCall struct{ ID, Name, Text string }

// FirstCalls returns ways to log a first call. key is what they send; without
// one, they say where it belongs.
func (v view) FirstCalls(key string) []firstCall {
	fill := strings.NewReplacer("{base}", v.CallsTo, "{key}", cmp.Or(key, "YOUR KEY"))
	calls := []firstCall{
		{ID: "python", Name: "Python"},
		{ID: "javascript", Name: "JavaScript"},
		{ID: "curl", Name: "curl"},
		{ID: "otel", Name: "OpenTelemetry"},
	}
	for i := range calls {
		text, err := shared.ReadFile("first-calls/" + calls[i].ID + ".txt")
		if err != nil {
			panic("dashboard: " + err.Error())
		}
		calls[i].Text = fill.Replace(strings.TrimSpace(string(text)))
	}

	return calls
}

// Keys returns the keys of the reader's account, the newest first.
func (c *Exchange) Keys() ([]wire.Key, error) {
	all, err := c.frame.Keys.Keys(c.Context())
	slices.Reverse(all)
	others := func(k wire.Key) bool { return k.AccountID != c.User.AccountID }

	return slices.DeleteFunc(all, others), err
}

// NameKeys replaces the ids of keys among authors by the keys' names.
func (c *Exchange) NameKeys(authors ...*string) error {
	var names map[string]string
	for _, author := range authors {
		id := wire.ActingKey(*author)
		if id == "" {
			continue
		}

		// Most pages have no key, and need not read them.
		if names == nil {
			keys, err := c.Keys()
			if err != nil {
				return err
			}
			names = map[string]string{}
			for _, k := range keys {
				names[k.ID] = k.Name
			}
		}
		if name := names[id]; name != "" {
			*author = "key " + name
		}
	}

	return nil
}
