//go:build linux

package dashboard

import (
	"fmt"
	"strings"
	"testing"

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

func startProxied(t *testing.T, more ...string) proxied {
	t.Helper()
	kept, stripped := harness.FreePort(t), harness.FreePort(t)
	_, port, _ := strings.Cut(kept, ":")
	args := []string{"server", "--name", "central",
		"--public-url", "http://localhost:" + port + basePath, "--trusted-proxy", "127.0.0.2"}
	server := harness.Launch(t, t.TempDir(), "127.0.0.1:0", append(args, more...)...)

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

	p.works(t, p.stripped, id) // the crawler presses everything where the path is kept
}

// works does what a person does on the main pages.
func (p proxied) works(t *testing.T, address, id string) {
	b := p.window(t, address)

	b.visit("/requests?tags=nothing")
	b.isAt("/sign-in")
	b.signIn("ann@example.com", crawlPassword)
	b.isAt("/requests")

	for _, path := range []string{"/templates", "/sidecars", "/keys", "/people", "/docs", "/"} {
		if path == "/docs" {
			b.do("open the menu", chromedp.Click(".me summary"))
		}
		b.press(fmt.Sprintf(`header a[href="%s%s"]`, basePath, path))
		b.isAt(path)
	}

	// A template, with its preview.
	name := "template of " + address
	b.visit("/templates")
	b.press("main .primary")
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

	b.signsOut()
	b.isAt("/sign-in")
	b.shows("main", "You have signed out.")
	b.visit("/requests")
	b.isAt("/sign-in")
}
