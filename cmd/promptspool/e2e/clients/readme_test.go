//go:build linux

package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// session returns the README's session, as a reader would paste it.
func session(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "<!-- session: the tests run this as it stands -->\n```sh\n")
	text, _, end := strings.Cut(rest, "\n```\n")
	if !ok || !end {
		t.Fatal("the README has no session")
	}
	return text
}

func TestTheReadmesSessionWorksWhenPasted(t *testing.T) {
	t.Parallel()
	partstest.Need(t, "curl", "node", "python3") // its examples are run, too
	dir := t.TempDir()
	sidecar, server := harness.FreePort(t), harness.FreePort(t)
	banner := startUp(t, dir, sidecar, server)
	key, err := os.ReadFile(filepath.Join(dir, ".promptspool", "key"))
	hasKey := strings.Contains(banner, strings.TrimSpace(string(key)))
	if err != nil || !hasKey || !strings.Contains(banner, "http://"+sidecar) {
		t.Fatalf("up says:\n%s\nkey: %v", banner, err)
	}
	// A port that the system chose is named as it is.
	if strings.Contains(banner, ":0)") || strings.Contains(banner, ":0\n") {
		t.Errorf("up names an address that nobody listens on:\n%s", banner)
	}

	comparedSidecar, comparedServer := harness.ComparingProxy(t, sidecar), harness.ComparingProxy(t, server)
	record := pasted[wire.Record](t, dir, session(t), comparedSidecar, comparedServer)
	scored := record.Scores[0].Number == 100 && record.Metadata["user_id"] == "ann"
	if record.Model != "gpt-4o-mini-2024-07-18" || !scored ||
		*record.Prompt.Version != 1 || *record.LatencyMS != 750 {
		t.Errorf("%+v", record)
	}
	for _, addr := range []string{sidecar, server} {
		_, tutorial := documentation(t, "http://"+addr+"/docs/tutorial")
		if _, search := documentation(t, "http://"+addr+"/docs/search"); !strings.Contains(tutorial+search, addr) {
			t.Errorf("the documentation at %s does not have its address", addr)
		}
	}
	commandsFindTheRolesOfUp(t, filepath.Join(dir, ".promptspool"))
	generatedClientRuns(t, comparedSidecar, comparedServer, strings.TrimSpace(string(key)))
	examplesRun(t, dir, comparedSidecar, comparedServer)

	// What up itself prints works too.
	_, paste, _ := strings.Cut(banner, "to find it on the server:\n")
	if page := pasted[wire.SearchPage](t, dir, paste, sidecar, server); page.Total < 1 {
		t.Errorf("%+v", page)
	}
}

// startUp runs `up` in a folder until the test ends, and returns what it prints.
func startUp(t *testing.T, dir, sidecar, server string, flags ...string) (banner string) {
	t.Helper()
	cmd := exec.Command(harness.Program(t), append([]string{"up", "--listen", sidecar, "--ops-listen", "127.0.0.1:0",
		"--server-listen", server, "--server-ops-listen", "127.0.0.1:0"}, flags...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("up ends with %v", err)
		}
	})

	for lines := bufio.NewScanner(stdout); !strings.Contains(banner, "requests/search") && lines.Scan(); {
		banner += lines.Text() + "\n"
	}

	return banner
}

// Under `up`, what pages offer to paste goes to the sidecar, with the one key that the terminal has.
func TestThePagesOfUpOfferItsSidecarAndItsKey(t *testing.T) {
	t.Parallel()
	partstest.Need(t, "curl", "node", "python3")
	dir := t.TempDir()
	sidecar, server := harness.FreePort(t), harness.FreePort(t)
	banner := startUp(t, dir, sidecar, server)
	_, key, _ := strings.Cut(banner, "export PROMPTSPOOL_KEY=")
	key, _, _ = strings.Cut(key, "\n")
	_, code, _ := strings.Cut(banner, "sign-up?code=")
	code, _, _ = strings.Cut(code, "\n")

	// The redirect that follows carries the cookies, which Go's client would not send over plain HTTP.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	signedUp, err := client.PostForm("http://"+server+"/sign-up", url.Values{
		"code": {code}, "email": {"ann@example.com"}, "password": {"correct horse battery"},
	})
	if err != nil {
		t.Fatal(err)
	}
	signedUp.Body.Close()
	page := func(path string) string {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+server+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, cookie := range signedUp.Cookies() {
			r.AddCookie(cookie)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return html.UnescapeString(string(text))
	}
	sendsToTheSidecar := func(page string) {
		t.Helper()
		directly := "The server directly: <code>http://" + server + "</code>"
		if !strings.Contains(page, directly) || strings.Count(page, server) != 1 || !strings.Contains(page, sidecar) {
			t.Errorf("not everything goes to %s, or not all of this is said once: %s\n%s", sidecar, directly, page)
		}
	}

	first := page("/")
	sendsToTheSidecar(first)
	for id, program := range map[string]string{"curl": "sh", "python": "python3", "javascript": "node"} {
		_, text, _ := strings.Cut(first, `<pre id="first-`+id+`" tabindex="0">`)
		text, _, _ = strings.Cut(text, "</pre>")
		path := filepath.Join(dir, id+".mjs")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), program, path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"success":true`) || !strings.Contains(text, key) {
			t.Errorf("%s: %v %s\n%s", id, err, out, text)
		}
	}
	if keys := page("/keys"); strings.Count(keys, "Rotate</summary>") != 1 {
		t.Errorf("there is another key than the one that up printed:\n%s", keys)
	}

	// So do commands in that folder.
	n := &harness.Node{T: t, Addr: server}
	arrived := func() bool { return n.TotalOf(key, map[string]any{}) == 3 }
	n.Eventually(arrived, func() string { return "calls are missing" })
	search := exec.CommandContext(t.Context(), harness.Program(t), "requests", "search", "--columns", "model")
	search.Dir = dir
	if out, err := search.CombinedOutput(); err != nil || strings.Count(string(out), "gpt-4o-mini\n") != 3 {
		t.Errorf("a search beside up: %v\n%s", err, out)
	}

	n.Call("POST", "/rest/prompt-templates", map[string]any{
		"prompt_template": map[string]any{"prompt_name": "greet"},
		"prompt_version": map[string]any{"prompt_template": map[string]any{
			"type": "completion", "content": []any{map[string]any{"type": "text", "text": "Hello."}}}},
	}, "X-API-KEY", key)
	sendsToTheSidecar(page("/template?name=greet"))
	if docs := page("/docs/tutorial"); !strings.Contains(docs, sidecar) || strings.Contains(docs, "127.0.0.1:8787") {
		t.Errorf("the tutorial does not have the sidecar's address %s", sidecar)
	}
}

// The demo is there as soon as `up` says so, under a sidecar that nothing has called yet.
func TestUpFillsANewFolderWithADemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := harness.FreePort(t)
	startUp(t, dir, harness.FreePort(t), server, "--demo")
	key, err := os.ReadFile(filepath.Join(dir, ".promptspool-demo", "key"))
	if err != nil {
		t.Fatal(err)
	}

	n := &harness.Node{T: t, Addr: server}
	secret := strings.TrimSpace(string(key))
	since := map[string]any{"filter": "since:30d"}
	if total := n.TotalOf(secret, since); total != 3140 {
		t.Errorf("%d requests of the last 30 days, want 3140", total)
	}
	n.Eventually(func() bool {
		fleet := n.Call("GET", "/sync/fleet", nil, "X-API-KEY", secret)
		return strings.Contains(string(fleet.Body), `"alive":true`)
	}, func() string { return "the sidecar is not listed before its first call" })

	again := harness.Say(t, "up", "--demo", "--data", filepath.Join(dir, ".promptspool-demo"))
	if again.Code == 0 || !strings.Contains(again.Err, "--demo fills a new data folder only") {
		t.Errorf("a demo over data: %d %s", again.Code, again.Err)
	}
}

// pasted runs shell text with the addresses of this test's processes, and decodes the
// last line of its output.
func pasted[T any](t *testing.T, dir, text, sidecar, server string) (v T) {
	t.Helper()

	text = strings.NewReplacer("127.0.0.1:8787", sidecar, "127.0.0.1:8788", server).Replace(text)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), readersPath(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	for line := range strings.Lines(string(out)) {
		var answer struct {
			Success bool   `json:"success"`
			ID      any    `json:"id"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil || !answer.Success && answer.ID == nil {
			t.Errorf("an answer: %s %v", line, err)
		}
	}

	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &v); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return v
}

// commandsFindTheRolesOfUp runs commands of both roles with the folder of a running `up`.
func commandsFindTheRolesOfUp(t *testing.T, data string) {
	t.Helper()
	for line, want := range map[string]string{
		"status":        "\nsidecar ",
		"spool check":   "Sound: ",
		"dead list":     "None.",
		"keys list":     "LAST USED",
		"config print":  "spool-bytes-max ",
		"archive check": "Sound: ",
	} {
		got := harness.Say(t, append(strings.Fields(line), "--data", data)...)
		if got.Code != 0 || !strings.Contains(got.Out, want) {
			t.Errorf("%s --data of up: %d %s%s; want %q", line, got.Code, got.Out, got.Err, want)
		}
	}
}
