package dashboard

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// newSecret is the secret of a new key on a page.
var newSecret = regexp.MustCompile(`<code id="secret">(ps_[^<]+)</code>`)

func TestAKeyIsMadeAndRotatedOnItsPage(t *testing.T) {
	s := openSite(t)
	const ann, mallory = "ann@example.com", "mallory@example.com"
	send := func(who, path string, status int, shows []string, pairs ...string) wire.Identity {
		t.Helper()
		got := s.call(who, "POST", path, s.form(who, pairs...))
		for _, text := range shows {
			if !strings.Contains(got.Body.String(), text) {
				t.Errorf("POST %s %v: the page does not show %q", path, pairs, text)
			}
		}
		if got.Code != status {
			t.Fatalf("POST %s %v answers %d: %s", path, pairs, got.Code, got.Body)
		}

		secret := newSecret.FindStringSubmatch(got.Body.String())
		if secret == nil {
			return wire.Identity{}
		}
		id, err := s.config.Keys.(interface {
			Authenticate(ctx context.Context, key wire.Secret) (wire.Identity, error)
		}).Authenticate(t.Context(), wire.Secret(secret[1]))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}

	// A preset outweighs what is checked; without one, that counts.
	if id := send(ann, "/keys", 200, nil, "scope", "app", "right", "manage"); id.Scope != wire.ScopeApp {
		t.Errorf("the preset app makes a key of scope %s", id.Scope)
	}
	id := send(ann, "/keys", 200, []string{"log,publish", "ends in 36 hours", "support/"},
		"name", "CI", "scope", "", "right", "log", "right", "publish", "prefix", "support/", "expires", " 36h ")
	if id.Scope != wire.ScopeLog|wire.ScopePublish || id.Prefix != "support/" || id.Expires.IsZero() {
		t.Errorf("the key is %+v", id)
	}

	// What was typed is shown again with what is wrong.
	typed := []string{`value="CI &amp; more"`, `value="nonsense"`, `value="read" checked`, `value="" checked`}
	send(ann, "/keys", 422, append(typed,
		`<input name="expires" aria-invalid="true" aria-describedby="fault" autofocus`,
		`id="fault" role="alert"><p>expires must be a time in the future`),
		"name", "CI & more", "scope", "", "right", "read", "expires", "nonsense")
	send(ann, "/keys", 422, []string{"is no scope"}, "scope", "")
	send(ann, "/keys", 422, []string{"which cover everything"}, "scope", "full", "prefix", "support/")

	next := send(ann, "/keys/"+id.KeyID+"/rotate", 200,
		[]string{"replaces <code>" + id.KeyID, "replaced by <code>", "ends in 1 hour"}, "overlap", "1h")
	if next.Scope != id.Scope || next.Prefix != id.Prefix || next.KeyID == id.KeyID || next.Expires.IsZero() {
		t.Errorf("the successor of %+v is %+v", id, next)
	}
	send(ann, "/keys/"+id.KeyID+"/rotate", 409, []string{next.KeyID + " replaces it"}, "overlap", "1h")
	send(ann, "/keys/"+next.KeyID+"/rotate", 422, nil, "overlap", "soon")
	send(ann, "/keys/"+next.KeyID+"/rotate", 200, []string{"which has ended"}, "overlap", "0s")
	send(mallory, "/keys/"+id.KeyID+"/rotate", http.StatusNotFound, nil, "overlap", "1h")

	log := s.call(ann, "GET", "/audit", nil).Body.String()
	for _, text := range []string{"create key", "rotate key", "log,publish, CI, templates support/, ends "} {
		if !strings.Contains(log, text) {
			t.Errorf("the audit log does not show %q", text)
		}
	}
}
