//go:build linux

package dashboard

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"promptspool/cmd/promptspool/e2e/harness"
)

const basePath = "/promptspool"

// proxied is a server below a base path, and the two addresses at which nginx serves it:
// one keeps the path, the other removes it.
type proxied struct {
	server         *harness.Node
	kept, stripped string // host:port
}

func startProxied(t *testing.T) proxied {
	t.Helper()
	kept, stripped := harness.FreePort(t), harness.FreePort(t)
	_, port, _ := strings.Cut(kept, ":")
	server := harness.Launch(t, t.TempDir(), "127.0.0.1:0", "server", "--name", "central",
		"--public-url", "http://localhost:"+port+basePath, "--trusted-proxy", "127.0.0.2")

	keeps, strips := harness.NginxServer(t, kept, server.Addr), harness.NginxServer(t, stripped, server.Addr)
	pass := "proxy_pass http://" + server.Addr
	harness.StartNginx(t, keeps, strings.Replace(strips, pass+";", pass+"/;", 1))
	server.Eventually(func() bool { return harness.Answers(kept) && harness.Answers(stripped) }, func() string {
		return "nginx does not listen"
	})

	return proxied{server, kept, stripped}
}

// window opens a window on the dashboard behind nginx.
func (p proxied) window(t *testing.T, address string) *browser {
	t.Helper()
	_, port, _ := strings.Cut(address, ":")
	b := openBrowser(t, p.server)
	b.base = "http://localhost:" + port + basePath

	return b
}

// isAt fails the test unless the browser shows the page of a path below the base.
func (b *browser) isAt(path string) {
	b.t.Helper()
	at, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.origin + location.pathname`))
	if err != nil || at != b.base+path {
		b.t.Fatalf("the browser is at %s (%v), want %s\n%s", at, err, b.base+path, b.text("main"))
	}
}

func TestPeopleWorkBehindNginx(t *testing.T) {
	t.Parallel()
	p := startProxied(t)

	// The app's sidecar and the command line come by the same doors.
	sidecar := harness.StartSidecar(t, t.TempDir(), p.kept+basePath)
	id := sidecar.Track("/rest/track-request", harness.AdminKey, asked("Do you ship to Oslo?", "We do."))
	publishVersion(p.server, 0)
	p.server.Record(id, harness.Events(1))
	for _, at := range []string{p.kept, p.stripped} {
		out, _ := harness.Run(t, 0, "requests", "search", "--url", "http://"+at+basePath)
		if !strings.Contains(out, id) {
			t.Errorf("the command line does not find the request at %s:\n%s", at, out)
		}
	}

	b := p.window(t, p.kept)
	b.visit("/sign-up")
	b.fill("[name=code]", harness.SetupCode(p.server))
	b.fill("[name=email]", "ann@example.com")
	b.fill("[name=password]", crawlPassword)
	b.press("main .primary")
	b.isAt("/")
	b.screenshots("proxied")

	t.Run("path kept", func(t *testing.T) { p.works(t, p.kept, id) })
	t.Run("path stripped", func(t *testing.T) { p.works(t, p.stripped, id) })
	t.Run("addresses", p.codesAreCountedByClient)
	t.Run("a session has its cookie", p.sessionHasItsCookie)
}

// works does what a person does on the main pages.
func (p proxied) works(t *testing.T, address, id string) {
	b := p.window(t, address)

	b.visit("/requests?tags=nothing")
	b.isAt("/sign-in")
	b.signIn("ann@example.com", crawlPassword)
	b.isAt("/requests")

	for _, path := range []string{"/templates", "/sidecars", "/keys", "/people", "/docs", "/"} {
		b.press(fmt.Sprintf(`header a[href="%s%s"]`, basePath, path))
		b.isAt(path)
	}

	// A template, with its preview.
	name := "template of " + address
	b.visit("/templates")
	b.press(".head .primary")
	b.isAt("/template/edit")
	b.fill("[name=name]", name)
	b.fill("#text-0", "Say hello to {name}.")
	b.waitsFor("#preview", "Say hello to")
	b.press("[value=save]")
	b.isAt("/template")
	b.shows("main", "Saved.", name)

	// A record.
	b.press(`header a[href="` + basePath + `/requests"]`)
	b.press("tbody a")
	b.isAt("/requests/" + id)
	b.shows("main", "Do you ship to Oslo?", "We do.")

	// An export, with the session of the page.
	b.press(`header a[href="` + basePath + `/requests"]`)
	export := `fetch(document.querySelector("a[href*='/requests/export']").href).then((r) => r.text())`
	lines, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](export, chromedp.EvalAwaitPromise))
	if err != nil || !strings.Contains(lines, id) {
		t.Errorf("the export has %q, %v", lines, err)
	}

	b.press(`header form[action$="/sign-out"] button`)
	b.isAt("/sign-in")
	b.shows("main", "You have signed out.")
	b.visit("/requests")
	b.isAt("/sign-in")
}

// codesMax is how many wrong codes one address may try.
const codesMax = 50

// codesAreCountedByClient tries invite codes from several addresses.
func (p proxied) codesAreCountedByClient(t *testing.T) {
	try := func(from, server, forwardedFor string) int {
		t.Helper()
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute}
		client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
		r, err := http.NewRequest("GET", "http://"+server+basePath+"/sign-up?code=wrong", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-For", forwardedFor)
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()

		return res.StatusCode
	}

	// Behind nginx, and past it: who writes another address into the header each time is
	// counted by the own address nevertheless.
	for _, c := range []struct{ from, server string }{{"127.0.0.3", p.kept}, {"127.0.0.4", p.server.Addr}} {
		for i := range codesMax {
			if code := try(c.from, c.server, fmt.Sprintf("198.51.100.%d", i)); code != http.StatusForbidden {
				t.Fatalf("from %s, code %d is answered %d", c.from, i, code)
			}
		}
		if code := try(c.from, c.server, "198.51.100.200"); code != http.StatusTooManyRequests {
			t.Errorf("from %s, one code too many is answered %d", c.from, code)
		}
	}

	// Nobody else is held back: neither who was named, nor others behind nginx.
	for _, c := range []struct{ from, server string }{{"127.0.0.5", p.kept}, {"127.0.0.6", p.server.Addr}} {
		if code := try(c.from, c.server, "127.0.0.3"); code != http.StatusForbidden {
			t.Errorf("from %s, a first code is answered %d", c.from, code)
		}
	}
}

// sessionHasItsCookie looks at the cookie that nginx passes on.
func (p proxied) sessionHasItsCookie(t *testing.T) {
	form := url.Values{"email": {"ann@example.com"}, "password": {crawlPassword}}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, at := range []string{p.kept, p.stripped} {
		res, err := client.PostForm("http://"+at+basePath+"/sign-in", form)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		cookies := res.Cookies()
		if res.StatusCode != http.StatusSeeOther || len(cookies) != 1 {
			t.Fatalf("signing in at %s: %d, %v", at, res.StatusCode, cookies)
		}
		if c := cookies[0]; c.Name != "__Secure-promptspool" || c.Path != basePath || !c.Secure {
			t.Errorf("at %s the cookie is %s", at, c)
		}
	}
}
