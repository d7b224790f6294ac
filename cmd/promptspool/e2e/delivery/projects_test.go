//go:build linux

package delivery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// A project is made by a file, renamed under a sidecar that goes on, archived, and opened again:
// what the sidecar accepted meanwhile is held, and arrives then.
func TestAProjectIsRenamedAndArchivedUnderASidecar(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	projects := func(want string, args ...string) string {
		t.Helper()
		args = append([]string{"projects"}, append(args, "--data", server.Data)...)
		out, errs, code := harness.RunWith(t, nil, args...)
		if code != 0 || !strings.Contains(out, want) {
			t.Fatalf("projects %v: %d\n%s%s\nwant %q", args, code, out, errs, want)
		}
		return out
	}

	file := filepath.Join(t.TempDir(), "projects.yaml")
	text := "projects:\n  shop:\n    people: {ann@example.com: owner}\n" +
		"    keys:\n      app-of-the-shop-with-a-name-that-fills-a-line: {scope: app}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	projects("created key app-of-the-shop-with-a-name-that-fills-a-line of shop", "apply", file, "--dry-run")
	made := projects("ann@example.com is owner in shop", "apply", file)
	_, rest, _ := strings.Cut(made, "line of shop: ")
	key, _, _ := strings.Cut(rest, " ")
	projects("Nothing to change.", "apply", file)

	if err := os.WriteFile(file, []byte(strings.Replace(text, "people", "poeple", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := harness.RunWith(t, nil, "projects", "apply", file, "--data", server.Data)
	if code != 1 || !strings.Contains(errs, "line 3") || !strings.Contains(errs, "poeple") {
		t.Errorf("a misspelled field: %d %s", code, errs)
	}

	before := sidecar.Track("/rest/track-request", key, harness.Chat())
	projects("store is the name of shop now.", "rename", "shop", "store")
	after := sidecar.Track("/rest/track-request", key, harness.Chat())
	sidecar.Emptied()

	projects("store is archived.", "archive", "store")
	late := sidecar.Track("/rest/track-request", key, harness.Chat())
	sidecar.Emptied()
	rows := dead(t, sidecar.Data)
	if len(rows) != 1 || rows[0].Lane != "held" || rows[0].RequestID != late {
		t.Fatalf("held are %+v, want the one of the archived project", rows)
	}
	if r := server.Call("POST", "/api/public/v2/requests/search", nil, "X-API-KEY", key); r.Status != 401 {
		t.Errorf("a key of an archived project: %d %s", r.Status, r.Body)
	}

	projects("store is open again.", "archive", "--undo", "store")
	out, _ := harness.Run(t, 0, "dead", "replay", "--all", "--data", sidecar.Data)
	sidecar.Emptied()
	reader := createKey(t, server, "store", "read")
	for _, id := range []string{before, after, late} {
		r := server.Call("GET", "/api/public/v2/requests/"+id, nil, "X-API-KEY", reader)
		if r.Status != 200 {
			t.Errorf("%s: %d %s, after %s", id, r.Status, r.Body, out)
		}
	}
	projects("store         1     2", "list")
}
