package frame

import (
	"cmp"
	"strings"
	"time"

	"promptspool/api/wire"
)

// The first key of a project is made when its founder signs up. For a while their browser keeps it, so
// that the page that waits for a first call shows it even after it is loaded again.
const firstKeyKept = time.Hour

// firstKeyCookie names the cookie with the key of the project that is open. Its prefix is a session's.
func (c *Exchange) firstKeyCookie() string { return c.frame.cookie.Name + "-key-" + c.User.AccountID }

// makeFirstKey shows the founder of a project a key. setUp: the project is the server's first.
func (c *Exchange) makeFirstKey(setUp bool) error {
	if key := string(c.frame.PrintedKey); setUp && key != "" {
		c.Remember(c.firstKeyCookie(), key, firstKeyKept)
		return nil
	}

	secret, k, err := c.frame.Keys.CreateKey(c.Context(), wire.NewKey{
		Account: c.User.AccountName, Name: "first key", Scope: wire.ScopeApp,
	})
	if err != nil {
		return err
	}
	c.Remember(c.firstKeyCookie(), string(secret), firstKeyKept)

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
