//go:build linux

package e2e

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// update writes the folders anew.
var update = flag.Bool("update", false, "write the stored folders anew")

// folders are the data folders of a server and a sidecar, as a binary left them.
const folders = "testdata/folders.tar.gz"

// leftBehind lists what the folders hold.
type leftBehind struct {
	Delivered string // a request that the server has, with everything that can be attached to it
	Waiting   string // a request that waits in the sidecar's spool
	Held      string // a request whose key was revoked
}

// leaveBehind makes such folders.
func leaveBehind(t *testing.T, dir string) {
	t.Helper()
	server := startServer(t, filepath.Join(dir, "server"), freePort(t))
	sidecar := startSidecar(t, filepath.Join(dir, "sidecar"), server.addr, "--drain", "0s", "--spool-free-min", "16MiB")
	made, _, _ := runCommand(t, nil, "keys", "create", "--data", server.data,
		"--account", "default", "--name", "revoked", "-o", "json")

	var key struct{ ID, Key string }
	if err := json.Unmarshal([]byte(made), &key); err != nil {
		t.Fatal(made, err)
	}

	sidecar.call("POST", "/rest/prompt-templates", greeting("Hello {name}", "prod"), "X-API-KEY", adminKey)

	var left leftBehind
	left.Delivered = sidecar.track("/rest/track-request", adminKey, chat())
	sidecar.track("/rest/track-score", adminKey, map[string]any{"request_id": left.Delivered, "score": 87})
	sidecar.track("/rest/track-metadata", adminKey, map[string]any{
		"request_id": left.Delivered, "metadata": map[string]string{"user_id": "ann"},
	})
	sidecar.track("/rest/track-prompt", adminKey, map[string]any{
		"request_id": left.Delivered, "prompt_name": "team/greet", "label": "prod",
		"prompt_input_variables": map[string]string{},
	})
	sidecar.track("/rest/track-request", key.Key, chat())
	sidecar.eventually(func() bool {
		return sidecar.call("POST", "/prompt-templates/team/greet", nil, "X-API-KEY", adminKey).Status == 200
	}, func() string { return "the template does not come" })

	server.record(left.Delivered, events(4))
	sidecar.emptied()
	if out, errs, code := runCommand(t, nil, "keys", "revoke", key.ID, "--data", server.data); code != 0 {
		t.Fatal(out, errs)
	}
	left.Held = sidecar.track("/rest/track-request", key.Key, chat())
	sidecar.eventually(
		func() bool { return sidecar.spoolStatus()["held"] == 1.0 },
		func() string { return "the event is not held" },
	)

	server.stop()
	left.Waiting = sidecar.track("/rest/track-request", adminKey, chat())
	sidecar.stop()

	text, err := json.Marshal(left)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "left.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a version wrote, a later one of the same format reads. A change of a layout
// without its number fails here; a change of the number writes the folders anew.
func TestFoldersThatAnEarlierVersionWroteAreRead(t *testing.T) {
	t.Parallel()
	if *update {
		dir := t.TempDir()
		leaveBehind(t, dir)
		tool(t, "tar", "--create", "--gzip", "--sparse", "--file", folders, "--exclude", "control.sock",
			"--directory", dir, "server", "sidecar", "left.json")
	}

	dir := t.TempDir()
	tool(t, "tar", "--extract", "--no-same-owner", "--file", folders, "--directory", dir)
	text, err := os.ReadFile(filepath.Join(dir, "left.json"))
	if err != nil {
		t.Fatal(err)
	}
	var left leftBehind
	if err := json.Unmarshal(text, &left); err != nil {
		t.Fatal(err)
	}

	for _, args := range [][]string{
		{"spool", "check", "--data", filepath.Join(dir, "sidecar")},
		{"archive", "check", "--data", filepath.Join(dir, "server")},
	} {
		if out, errs, code := runCommand(t, nil, args...); code != 0 {
			t.Fatalf("%v: %d\n%s%s\nIf a format's number was changed on purpose: "+
				"go test ./cmd/promptspool/e2e -run %s -update", args[:2], code, out, errs, t.Name())
		}
	}

	sidecar := startSidecar(t, filepath.Join(dir, "sidecar"), freePort(t))
	r := sidecar.call("POST", "/prompt-templates/team/greet", nil, "X-API-KEY", adminKey)
	if r.Status != 200 || r.Header.Get("X-Cache") != "stale" {
		t.Errorf("the template from the sidecar's disk: %d %s", r.Status, r.Body)
	}
	if s := sidecar.spoolStatus(); s["events"] != 1.0 || s["held"] != 1.0 || s["gaps"] != 0.0 {
		t.Errorf("the spool: %v", s)
	}
	sidecar.stop()

	server := startServer(t, filepath.Join(dir, "server"), freePort(t))
	sidecar = startSidecar(t, filepath.Join(dir, "sidecar"), server.addr)
	rec := server.record(left.Delivered, events(4))
	prompted := rec.Prompt != nil && *rec.Prompt.Version == 1
	if rec.Scores[0].Score != 87 || rec.Metadata["user_id"] != "ann" || !prompted || *rec.InputTokens != 82 {
		t.Errorf("the record: %+v", rec)
	}

	// The version that wrote the folders knew no excerpts.
	server.eventually(func() bool {
		var page wire.SearchPage
		r := server.call("POST", "/api/public/v2/requests/search", map[string]any{}, "X-API-KEY", adminKey)
		if err := json.Unmarshal(r.Body, &page); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(page.Items, func(r wire.Row) bool {
			return r.RequestID == left.Delivered && r.InputExcerpt != "" && r.OutputExcerpt != ""
		})
	}, func() string { return "the list shows no excerpts of an older record" })

	server.record(left.Waiting, func(r wire.Record) bool { return r.Model == "gpt-4-0613-answered" })
	r = server.get("/prompt-templates/team/greet/labels")
	if r.Status != 200 || !strings.Contains(string(r.Body), "prod") {
		t.Errorf("the labels: %d %s", r.Status, r.Body)
	}
	out, errs, code := runCommand(t, nil,
		"dead", "list", "--lane", "held", "--data", sidecar.data, "-o", "json")
	if code != 0 || !strings.Contains(out, left.Held) {
		t.Errorf("held: %d %s%s", code, out, errs)
	}
}
