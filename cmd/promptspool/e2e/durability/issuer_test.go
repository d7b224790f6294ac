//go:build linux

package durability

import (
	"net/http"
	"testing"

	"promptspool/api/auth/oidc/oidctest"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

func TestASignInBegunAtOneServerIsFinishedAtTheOther(t *testing.T) {
	t.Parallel()
	const public = "http://prompts.example.com"
	issuer := oidctest.Start(t, public)
	issuer.Put(oidctest.User{Email: "eve@corp.example", Groups: []string{"staff"}})
	args := []string{"--public-url", public, "--cookies-insecure", "--oidc-issuer", issuer.URL,
		"--oidc-client-id", oidctest.ClientID, "--oidc-client-secret", oidctest.ClientSecret,
		"--oidc-role", "staff=editor@shop"}
	dsn := postgrestest.DSN(t)
	a := startShared(t, dsn, "a", harness.FreePort(t), args...)
	b := startShared(t, dsn, "b", harness.FreePort(t), args...)

	// The servers are one to the browser, by turns.
	cookies := map[string]*http.Cookie{}
	get := func(server *harness.Node, path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+server.Addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cookies {
			r.AddCookie(c)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		for _, c := range answer.Cookies() {
			cookies[c.Name] = c
		}
		return answer
	}

	begun := get(a, "/sign-in/oidc?next=/templates")
	back := issuer.Browser(t, begun.Header.Get("Location"), "eve@corp.example")
	if got := get(b, back.RequestURI()); got.Header.Get("Location") != "/templates" {
		t.Fatalf("the other server answers %s to %q", got.Status, got.Header.Get("Location"))
	}
	for _, server := range []*harness.Node{a, b} {
		if got := get(server, "/templates"); got.StatusCode != 200 {
			t.Errorf("a server answers %s", got.Status)
		}
	}

	// At once at both: at one she is disabled, at the other she is out.
	harness.PeopleSay(t, a, "disable", "eve@corp.example")
	if got := get(b, "/templates"); got.StatusCode != 303 {
		t.Errorf("after she was disabled, the other server answers %s", got.Status)
	}
}
