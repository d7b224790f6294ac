package oidc_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"promptspool/api/auth/oidc"
	"promptspool/api/auth/oidc/oidctest"
	"promptspool/api/wire"
)

// ours is where the server under test is reached, and callback where browsers come back to.
const (
	ours     = "https://prompts.example.com"
	callback = ours + "/sign-in/oidc/callback"
)

// town is an issuer, and a server that lets people sign in there.
type town struct {
	*testing.T
	issuer *oidctest.Issuer
	oidc   *oidc.Issuer
	config oidc.Config
	ahead  time.Duration // of our clock
}

func openTown(t *testing.T) *town {
	t.Helper()
	w := &town{T: t, issuer: oidctest.Start(t, ours)}
	w.issuer.Put(oidctest.User{Subject: "u1", Email: "ann@example.com", Groups: []string{"staff", "cn=admins,dc=x"}})
	w.config = oidc.Config{
		Issuer:       w.issuer.URL,
		ClientID:     oidctest.ClientID,
		ClientSecret: oidctest.ClientSecret,
		GroupsClaim:  "groups",
		Now:          func() time.Time { return time.Now().Add(w.ahead) },
		Roles: map[string][]wire.Grant{
			"staff":          {{Project: "app", Role: wire.RoleEditor}, {Project: "default", Role: wire.RoleViewer}},
			"cn=admins,dc=x": {{Project: "default", Role: wire.RoleOwner}},
			"guests":         {{Project: "app", Role: wire.RoleOwner}},
		},
	}
	w.oidc = oidc.New(w.config)

	return w
}

// browse begins a sign-in, and lets a person sign in at the issuer.
func (w *town) browse(email string) (url.Values, wire.LoginAttempt) {
	w.Helper()
	address, kept, err := w.oidc.Begin(w.Context(), callback)
	if err != nil {
		w.Fatal(err)
	}
	back := w.issuer.Browser(w, address, email)
	if !strings.HasPrefix(back.String(), callback+"?") {
		w.Fatalf("the issuer sends the browser to %s", back)
	}
	return back.Query(), kept
}

// enter lets a person sign in.
func (w *town) enter(email string) (wire.Login, error) {
	w.Helper()
	q, kept := w.browse(email)
	return w.oidc.Finish(w.Context(), callback, q, kept)
}

// refuses checks that a sign-in fails with a code, and a message that contains a text.
func (w *town) refuses(err error, code wire.Code, text string) {
	w.Helper()
	if !wire.IsCode(err, code) || !strings.Contains(wire.AsError(err).Message, text) {
		w.Errorf("the error is %v; want %s with %q", err, code, text)
	}
}

func TestAPersonSignsInAndGetsTheRolesOfTheirGroups(t *testing.T) {
	w := openTown(t)
	want := wire.Login{Issuer: w.issuer.URL, Subject: "u1", Email: "ann@example.com", Grants: []wire.Grant{
		{Project: "app", Role: wire.RoleEditor},
		{Project: "default", Role: wire.RoleViewer},
		{Project: "default", Role: wire.RoleOwner},
	}}

	// Thin tokens have only the subject; the rest is asked for.
	for _, thin := range []bool{false, true} {
		w.issuer.Set(oidctest.Settings{Thin: thin})
		got, err := w.enter("ann@example.com")
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(wire.Login{}, "IDToken")); d != "" || err != nil {
			t.Errorf("the login (thin: %t) is wrong: %v %s", thin, err, d)
		}
		if strings.Count(got.IDToken, ".") != 2 {
			t.Errorf("the ID token is %q", got.IDToken)
		}
	}

	w.issuer.Put(oidctest.User{Subject: "u1", Email: "ann@example.com"})
	got, err := w.enter("ann@example.com")
	if err != nil || got.Grants != nil {
		t.Errorf("without groups: %+v, %v", got, err)
	}
}

func TestAnEmailHasToBeVerified(t *testing.T) {
	w := openTown(t)
	trusting := w.config
	trusting.TrustEmail = true
	w.issuer.Put(oidctest.User{Email: "eve@example.com", Unverified: true}) // this issuer leaves out the claim
	_, err := w.enter("eve@example.com")
	w.refuses(err, wire.CodeForbidden, "does not say that eve@example.com was verified")

	w.oidc.Set(trusting)
	if _, err := w.enter("eve@example.com"); err != nil {
		t.Errorf("an issuer that is trusted: %v", err)
	}

	w.issuer.Set(oidctest.Settings{Claims: map[string]any{"email_verified": "false"}})
	_, err = w.enter("eve@example.com")
	w.refuses(err, wire.CodeForbidden, "does not say that eve@example.com was verified")
}

func TestAnAnswerIsTakenOnceAndByTheBrowserThatAsked(t *testing.T) {
	w := openTown(t)
	q, kept := w.browse("ann@example.com")
	with := func(change func(q url.Values, kept *wire.LoginAttempt)) error {
		changed, other := url.Values{}, kept
		for name := range q {
			changed.Set(name, q.Get(name))
		}
		change(changed, &other)
		_, err := w.oidc.Finish(t.Context(), callback, changed, other)

		return err
	}

	w.refuses(with(func(_ url.Values, kept *wire.LoginAttempt) { *kept = wire.LoginAttempt{} }),
		wire.CodeForbidden, "begun in another browser")
	w.refuses(with(func(q url.Values, kept *wire.LoginAttempt) { q.Del("state"); kept.State = "" }),
		wire.CodeForbidden, "begun in another browser")
	w.refuses(with(func(q url.Values, _ *wire.LoginAttempt) { q.Set("state", "x"+q.Get("state")) }),
		wire.CodeForbidden, "begun in another browser")

	// A code of someone else's attempt, planted together with our state: PKCE does not fit.
	planted, _ := w.browse("ann@example.com")
	w.refuses(with(func(q url.Values, _ *wire.LoginAttempt) { q.Set("code", planted.Get("code")) }),
		wire.CodeForbidden, "refused the sign-in: invalid_")

	if err := with(func(url.Values, *wire.LoginAttempt) {}); err != nil {
		t.Errorf("the good answer is refused: %v", err)
	}
	w.refuses(with(func(url.Values, *wire.LoginAttempt) {}), wire.CodeForbidden, "refused the sign-in: invalid_")
}

func TestAnErrorOfTheIssuerIsShownAsText(t *testing.T) {
	w := openTown(t)
	_, kept := w.browse("ann@example.com")
	q := url.Values{"error": {"access_denied"}, "error_description": {"<b>not</b>\r\ntoday" + strings.Repeat(".", 999)}}

	// Without the state it is a stranger's text.
	_, err := w.oidc.Finish(t.Context(), callback, q, kept)
	w.refuses(err, wire.CodeForbidden, "begun in another browser")

	q.Set("state", kept.State)
	_, err = w.oidc.Finish(t.Context(), callback, q, kept)
	w.refuses(err, wire.CodeForbidden, "refused the sign-in: access_denied <b>not</b>\r\ntoday...")
	if text := wire.AsError(err).Message; len(text) > 400 {
		t.Errorf("the message has %d bytes", len(text))
	}
}

func TestOnlyTokensForThisSignInAreAccepted(t *testing.T) {
	w := openTown(t)
	earlier, err := w.enter("ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	wiki := w.config
	wiki.ClientID = oidctest.OtherID
	ourselves := w.oidc
	w.oidc = oidc.New(wiki)
	foreign, err := w.enter("ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	w.oidc = ourselves

	head, payload, _ := strings.Cut(earlier.IDToken, ".")
	for text, token := range map[string]any{
		"expected audience":   foreign.IDToken,
		"not for this":        earlier.IDToken, // its nonce is another one
		"verify signature":    head + ".e30." + payload[strings.LastIndexByte(payload, '.')+1:],
		"malformed jwt":       "eyJhbGciOiJub25lIn0.e30.", // alg: none
		"answer was not acce": nil,
	} {
		written, err := json.Marshal(token)
		if err != nil {
			t.Fatal(err)
		}
		w.issuer.Set(oidctest.Settings{IDToken: written})
		_, err = w.enter("ann@example.com")
		w.refuses(err, wire.CodeForbidden, text)
	}

	w.issuer.Set(oidctest.Settings{})
	if _, err := w.enter("ann@example.com"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestATokenExpiresButClocksMayDiffer(t *testing.T) {
	w := openTown(t)

	// The issuer's tokens are good for an hour.
	for ahead, good := range map[time.Duration]bool{
		-time.Hour: true, 61 * time.Minute: true, 63 * time.Minute: false,
	} {
		w.ahead = ahead
		_, err := w.enter("ann@example.com")
		if good && err != nil {
			t.Errorf("with a clock %s ahead: %v", ahead, err)
		}
		if !good {
			w.refuses(err, wire.CodeForbidden, "compare the clocks")
		}
	}
}

func TestKeysOfTheIssuerAreRotated(t *testing.T) {
	w := openTown(t)
	for range 3 {
		if _, err := w.enter("ann@example.com"); err != nil {
			t.Fatal(err)
		}
		w.issuer.Rotate()
	}
}

func TestTheIssuerMayBeAwayAndComeBack(t *testing.T) {
	w := openTown(t)
	w.issuer.Set(oidctest.Settings{Away: true})
	if _, _, err := w.oidc.Begin(t.Context(), callback); !wire.IsCode(err, wire.CodeUnavailable) {
		t.Errorf("beginning while it is away: %v", err)
	}
	if to := w.oidc.SignOut(t.Context(), "", ours+"/sign-in"); to != "" {
		t.Errorf("signing out while it is away leads to %s", to)
	}

	// It comes back, and many people sign in together.
	w.issuer.Set(oidctest.Settings{})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, _, err := w.oidc.Begin(t.Context(), callback); err != nil {
				t.Errorf("after it came back: %v", err)
			}
		})
	}
	wait.Wait()

	// It leaves between the two steps.
	q, kept := w.browse("ann@example.com")
	w.issuer.Set(oidctest.Settings{Away: true})
	_, err := w.oidc.Finish(t.Context(), callback, q, kept)
	w.refuses(err, wire.CodeUnavailable, "could not be asked")
	w.issuer.Set(oidctest.Settings{})
	if _, err := w.oidc.Finish(t.Context(), callback, q, kept); err != nil {
		t.Errorf("the same answer after it came back: %v", err)
	}
}

func TestAWrongSecretIsNamedAndCanBeReplaced(t *testing.T) {
	w := openTown(t)
	wrong := w.config
	wrong.ClientSecret = "another"
	w.oidc.Set(wrong)
	_, err := w.enter("ann@example.com")
	w.refuses(err, wire.CodeForbidden, "refused the sign-in: invalid_client")

	w.oidc.Set(w.config)
	if _, err := w.enter("ann@example.com"); err != nil {
		t.Errorf("with the right one: %v", err)
	}
}

func TestASignOutEndsTheIssuersSession(t *testing.T) {
	w := openTown(t)
	login, err := w.enter("ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if w.issuer.Passes("u1") == 0 {
		t.Fatal("ann is not signed in at the issuer")
	}

	back := w.issuer.Browser(t, w.oidc.SignOut(t.Context(), login.IDToken, ours+"/sign-in"), "")
	if w.issuer.Passes("u1") > 0 || back.String() != ours+"/sign-in" {
		t.Errorf("after signing out the browser is at %s; ann's sessions are %d", back, w.issuer.Passes("u1"))
	}
}

func TestTooManyGroupsAreNoticed(t *testing.T) {
	w := openTown(t)
	w.config.GroupsClaim = "roles"
	w.oidc.Set(w.config)
	w.issuer.Set(oidctest.Settings{Claims: map[string]any{
		"_claim_names":   map[string]any{"roles": "src1"},
		"_claim_sources": map[string]any{"src1": map[string]any{"endpoint": "https://graph.example.com"}},
	}})
	_, err := w.enter("ann@example.com")
	w.refuses(err, wire.CodeForbidden, "more groups than the identity provider sends")

	// A single group may come as a text.
	w.issuer.Set(oidctest.Settings{Claims: map[string]any{"roles": "staff"}})
	got, err := w.enter("ann@example.com")
	if err != nil || len(got.Grants) != 2 || got.Grants[1].Role != wire.RoleViewer {
		t.Errorf("with one group: %+v, %v", got, err)
	}
}
