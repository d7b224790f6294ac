//go:build linux

package harness

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"promptspool/api/dashboard/docs"
	"promptspool/metrics/partstest"
)

// Example is a fenced code block of a page.
type Example struct {
	Language string
	Mark     string // run, compile or shown
	Rest     string // the file that a block is saved as, or why it is only shown
	Code     string
}

// fence matches a block, which may be indented in a list.
var fence = regexp.MustCompile("(?ms)^( *)```([a-z]+) ?([a-z]*) ?([^\n]*)\n(.*?)^ *```$")

// ExamplesOf returns the blocks of a page.
func ExamplesOf(page string) (all []Example) {
	for _, m := range fence.FindAllStringSubmatch(docs.Find(page).Source, -1) {
		code := strings.ReplaceAll("\n"+m[5], "\n"+m[1], "\n")[1:]
		all = append(all, Example{m[2], m[3], m[4], code})
	}
	return all
}

// ExamplesIn returns the examples of all pages in a language.
func ExamplesIn(t *testing.T, language string) (all []Example) {
	t.Helper()
	for _, page := range docs.Names() {
		for _, e := range ExamplesOf(page) {
			if e.Language == language {
				all = append(all, e)
			}
		}
	}
	if len(all) == 0 {
		t.Errorf("no page has a block in %s", language)
	}

	return all
}

// NginxServer returns a server block of the documentation's page about reverse proxies. It
// listens at an address of the tests without TLS, and passes calls on to another.
func NginxServer(t *testing.T, listen, upstream string) string {
	t.Helper()
	for _, e := range ExamplesOf("reverse-proxy") {
		if e.Language != "nginx" {
			continue
		}
		var block strings.Builder
		for line := range strings.Lines(e.Code) {
			if !strings.Contains(line, "ssl_certificate") {
				block.WriteString(line)
			}
		}
		own := strings.NewReplacer("443 ssl", listen, "127.0.0.1:8788", upstream)
		return own.Replace(block.String())
	}

	t.Fatal("the page has no example for nginx")
	return ""
}

// NginxConfig writes a configuration with some server blocks, which changes nothing outside dir.
func NginxConfig(t *testing.T, dir string, servers ...string) (path string) {
	t.Helper()
	config := `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {}
http {
	access_log off;
	proxy_bind 127.0.0.2;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
` + strings.Join(servers, "\n") + "}\n"
	path = filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}

// StartNginx runs nginx with some server blocks until the test ends. It calls from
// 127.0.0.2, so that it can be told apart from other callers.
func StartNginx(t *testing.T, servers ...string) {
	t.Helper()
	partstest.Need(t, "nginx")
	dir := t.TempDir()
	path := NginxConfig(t, dir, servers...)

	var log strings.Builder
	cmd := exec.Command("nginx", "-p", dir, "-c", path)
	cmd.Stderr = &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it does not outlive tests that are killed
	if err := cmd.Start(); err != nil {
		t.Fatalf("nginx: %v (make test installs it)", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of nginx:\n%s", log.String())
		}
	})
}

// Answers reports whether something listens at an address.
func Answers(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_ = conn.Close()
	}

	return err == nil
}
