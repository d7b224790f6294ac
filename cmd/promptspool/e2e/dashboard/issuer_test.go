//go:build linux

package dashboard

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"promptspool/api/auth/oidc/oidctest"
	"promptspool/cmd/promptspool/e2e/harness"
)

func TestPeopleSignInAtAnIssuerBehindNginx(t *testing.T) {
	t.Parallel()
	const eve, session = "eve@corp.example", 8 * time.Second // on a slow machine a page takes seconds
	issuer := oidctest.Start(t)
	issuer.Put(oidctest.User{Email: eve, Groups: []string{"staff"}})
	secret := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("not the secret\n")
	p := startProxied(t, "--sign-in", "oidc", "--oidc-issuer", issuer.URL, "--oidc-client-id", oidctest.ClientID,
		"--oidc-client-secret-file", secret, "--oidc-role", "staff=editor@shop", "--oidc-session", session.String(),
		"--emergency-owner", "ann@example.com")
	b := p.window(t, p.kept)
	issuer.Allow(b.base)
	source := axe(t)

	// A wrong secret is named, and can be replaced while the server runs.
	b.visit("/templates?q=greet")
	b.isAt("/sign-in")
	b.accessible(source, "sign-in with an issuer")
	b.screenshots("sign-in-issuer")
	b.press("main .primary")
	b.shows("body", "Issuer")
	b.fill("[name=email]", eve)
	b.press("button")
	b.shows("main", "The identity provider refused the sign-in: invalid_client")
	b.accessible(source, "a sign-in that failed")
	b.screenshots("sign-in-issuer-refused")
	write(oidctest.ClientSecret + "\n")
	if err := p.server.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.server.Eventually(func() bool {
		return strings.Contains(p.server.Logged(), "the configuration was taken over")
	}, p.server.Logged)

	// The page that was wanted at first is there. The issuer knows the browser by now.
	b.press("main .primary")
	b.isAt("/templates")
	b.shows(".side", eve, "editor")
	b.screenshots("signed-in-issuer")

	// The session ends again and again; every click goes through without another one.
	for _, page := range []string{"/requests?tags=a", "/"} {
		path, _, _ := strings.Cut(page, "?")
		b.visit("/template/edit") // an empty list would look again meanwhile, and sign her in by itself
		before := issuer.Passes(eve)
		harness.PauseFor(session)
		b.visit(page)
		b.isAt(path)
		if issuer.Passes(eve) == before {
			t.Errorf("%s is shown without a pass through the issuer, though the session has ended", page)
		}
	}

	// It ends while she edits, for good: her changes wait for a sign-in in another tab.
	b.visit("/template/edit")
	b.fill("[name=name]", "greet")
	b.fill("#text-0", "Say hello to {name}.")
	harness.PeopleSay(t, p.server, "disable", eve)
	harness.PeopleSay(t, p.server, "enable", eve)
	b.press("[value=save]")
	b.shows("main", "Sign in to continue; your changes are kept.", "in a new tab")
	b.accessible(source, "a form that waits for a sign-in at the issuer")
	b.screenshots("sign-in-issuer-form")
	tab := b.tab()
	tab.visit("/sign-in/oidc?next=/%3Fdone%3Dback-to-tab")
	tab.shows("main", "Go back to the tab with your changes")
	b.press("[action$='/sign-in/continue'] button")
	b.shows("main", "You are signed in again. Nothing has been sent yet")
	if got := b.value("#text-0"); got != "Say hello to {name}." {
		t.Errorf("the text is %q", got)
	}

	// Signing out ends the issuer's session as well, and no click brings it back.
	b.leaves("/")
	b.signsOut()
	b.isAt("/sign-in")
	if passes := issuer.Passes(eve); passes > 0 {
		t.Errorf("eve is signed in at the issuer, after %d passes", passes)
	}
	b.visit("/requests")
	b.isAt("/sign-in")

	// A link that leads a stranger through the issuer lets them in nowhere before they were asked.
	const joe = "joe@corp.example"
	issuer.Put(oidctest.User{Email: joe})
	link := harness.LinkPath(t, harness.PeopleSay(t, p.server, "invite", "--role", "viewer"))
	b.visit("/sign-in/oidc?next=" + url.QueryEscape(strings.TrimPrefix(link, basePath)))
	b.fill("[name=email]", joe)
	b.press("button")
	b.isAt("/sign-up")
	b.shows("main", "You are joining the project", "default")
	b.press("main .primary")
	b.isAt("/")
	b.shows(".side", joe, "viewer")
}
