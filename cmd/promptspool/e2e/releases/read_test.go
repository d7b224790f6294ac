//go:build linux

package releases

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

var update = flag.Bool("update", false, "write what this version leaves on disk anew")

func TestWhatAReleaseWroteIsReadInPlace(t *testing.T) {
	if *update {
		writeRelease(t) // before all others, which read it
	} else {
		t.Parallel()
	}
	for _, dir := range releaseDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Run("server and sidecar", func(t *testing.T) { t.Parallel(); serverGoesOn(t, dir) })
			t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); databaseGoesOn(t, dir) })
			t.Run("backup", func(t *testing.T) { t.Parallel(); backupIsRestored(t, dir) })
			t.Run("export", func(t *testing.T) { t.Parallel(); exportIsImported(t, dir) })
			more := filepath.Join(dir, moreDir)
			t.Run("more", func(t *testing.T) { t.Parallel(); filesBecomeAsAnew(t, more) })
			t.Run("more in PostgreSQL", func(t *testing.T) { t.Parallel(); databaseBecomesAsAnew(t, more) })
			t.Run("more in a backup", func(t *testing.T) { t.Parallel(); moreIsRestored(t, more) })
		})
	}
}

// releaseDirs returns the folders of the releases.
func releaseDirs(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("there is no release to read: %v", err)
	}
	return dirs
}

// read decodes a file of a release.
func read[T any](t *testing.T, dir, name string) (v T) {
	t.Helper()
	if err := json.Unmarshal(decompress(t, filepath.Join(dir, name)), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// serverGoesOn upgrades a sidecar, which starts before its server and once more after it.
func serverGoesOn(t *testing.T, dir string) {
	address := harness.FreePort(t)
	data, spool := unpacked(t, filepath.Join(dir, serverFile)), unpacked(t, filepath.Join(dir, sidecarFile))
	harness.Run(t, 0, "spool", "check", "--data", spool)
	sidecar := harness.StartSidecar(t, spool, address, "--drain", "10ms")
	greeting := answers(sidecar, "POST", "/prompt-templates/team%2Fgreet", `{"label":"prod"}`)
	if !strings.Contains(string(greeting.Body), "Be brief.") {
		t.Errorf("the sidecar has the template as %s", greeting.Body)
	}

	sidecar.Stop()

	server := harness.StartServer(t, data, address)
	said := read[said](t, dir, serverSaid)
	for _, a := range said.Packed {
		a.still(t, server)
	}
	goesOn(t, server, said)
	left := read[spooled](t, dir, sidecarSaid)
	sidecar = harness.StartSidecar(t, spool, address)
	sidecar.Emptied()
	for _, call := range left.Waiting {
		server.Record(call, harness.Events(2))
	}

	dead, _ := harness.Run(t, 0, "dead", "list", "-o", "json", "--data", spool)
	if diff := cmp.Diff(decoded(t, left.Dead), decoded(t, json.RawMessage(dead))); diff != "" {
		t.Errorf("the lanes of the spool differ:\n%s", diff)
	}
	key := harness.WriteFile(t, "key", harness.AdminKey)
	harness.Run(t, 0, "dead", "replay", "--all", "--key-file", key, "--data", spool)
	var lanes struct {
		Items []struct {
			RequestID string `json:"request_id"`
		}
	}
	if err := json.Unmarshal(left.Dead, &lanes); err != nil || len(lanes.Items) != 2 {
		t.Fatalf("the release had in its lanes %s", left.Dead)
	}
	for _, event := range lanes.Items {
		server.Record(event.RequestID, harness.Events(1))
	}
	sidecar.Stop()
	server.Stop()
	harness.Run(t, 0, "archive", "check", "--data", data)
}

// goesOn fails unless a server knows what the release knew, and works on.
func goesOn(t *testing.T, server *harness.Node, said said) {
	t.Helper()
	for _, a := range said.Answers {
		a.still(t, server)
	}

	r := server.Call("POST", "/rest/track-score", harness.Score(id(greeted), 90), "X-API-KEY", said.ScoringKey)
	if r.Status != 200 {
		t.Errorf("the key judge scores a call: %d %s", r.Status, r.Body)
	}
	r = server.Call("GET", "/api/public/v2/requests/"+id(greeted), nil, "X-API-KEY", said.ScoringKey)
	if r.Status != 403 {
		t.Errorf("the key judge reads a call: %d %s", r.Status, r.Body)
	}
	again := server.Get("/api/public/v2/requests/" + id(greeted))
	if !strings.Contains(string(again.Body), `{"name":"default","score":90,"value":90}`) {
		t.Errorf("the new score is not there: %s", again.Body)
	}
	found := server.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	if n := server.Total(map[string]any{"q": "boston weather"}); n == 0 {
		t.Errorf("the new call %s is not found by its words", found)
	}
	answers(server, "POST", "/rest/prompt-templates", harness.Greeting("Hello {name}.", "prod"))

	ann := newBrowser(t, server)
	ann.sends("/sign-in", url.Values{"email": {owner}, "password": {password}})
	ann.shows("/review/greetings", "Is it raining in Boston?", "faithful", "curt")
	ann.shows("/audit", "save review queue", "define score", "rob@example.com")
	ann.shows("/requests?filter=elephant", "Is it raining in Boston?")
	for _, a := range said.Deletions {
		a.still(t, server, "gone_by")
	}
}

func databaseGoesOn(t *testing.T, dir string) {
	dsn := restored(t, filepath.Join(dir, dumpFile))
	server := startShared(t, harness.Program(t), dsn)
	goesOn(t, server, read[said](t, dir, dumpSaid))
	server.Stop()
	harness.Run(t, 0, "archive", "check", "--archive", dsn)
}

// restored returns a new database with what the file of a dump has.
func restored(t *testing.T, path string) (dsn string) {
	t.Helper()
	return databaseOf(t, decompress(t, path))
}

// databaseOf returns a new database with what a dump has.
func databaseOf(t *testing.T, dump []byte) (dsn string) {
	t.Helper()
	dsn = postgrestest.Plain(t)
	if _, err := postgrestest.Connect(t, dsn).PgConn().Exec(t.Context(), string(dump)).ReadAll(); err != nil {
		t.Fatal(err)
	}
	return dsn
}

func backupIsRestored(t *testing.T, dir string) {
	data := filepath.Join(t.TempDir(), "restored")
	harness.Run(t, 0, "restore", "--data", data, filepath.Join(dir, backupFile))
	goesOn(t, harness.StartServer(t, data, "127.0.0.1:0"), read[said](t, dir, serverSaid))
}

func exportIsImported(t *testing.T, dir string) {
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	imported(t, server, decompress(t, filepath.Join(dir, eventsFile)))
	said := read[said](t, dir, serverSaid)
	for _, a := range append(said.Answers, said.Deletions...) {
		if strings.Contains(a.Question, "/requests") || strings.Contains(a.Question, trace) {
			a.still(t, server, "arrived_at", "first_arrived_at", "last_arrived_at", "gone_by")
		}
	}
}

// imported sends a server exported events.
func imported(t *testing.T, server *harness.Node, events []byte) {
	t.Helper()
	file := harness.WriteFile(t, "events", string(events))
	harness.Run(t, 0, "requests", "import", file, "--url", "http://"+server.Addr)
}

// later makes the formats of a folder those of a later release.
func later(t *testing.T, data string) {
	t.Helper()
	formats, err := filepath.Glob(filepath.Join(data, "*", "FORMAT"))
	if err != nil || len(formats) != 1 {
		t.Fatalf("formats of a folder: %v %v", formats, err)
	}
	text, err := os.ReadFile(formats[0])
	if err == nil {
		err = os.WriteFile(formats[0], bytes.Replace(text, []byte("format "), []byte("format 9"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A program does not touch what a newer one wrote, and says what to do.
func TestWhatANewerReleaseWroteIsRefusedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	releases := releaseDirs(t)
	dir := releases[len(releases)-1]
	refused := func(where string, n *harness.Node, says string) {
		t.Helper()
		if n.Takes() || !strings.Contains(n.Logged(), says) {
			t.Errorf("%s of a newer release:\n%s", where, n.Logged())
		}
	}
	for file, role := range map[string][]string{
		serverFile:  {"server"},
		sidecarFile: {"sidecar", "--upstream", "http://127.0.0.1:1"},
	} {
		data := unpacked(t, filepath.Join(dir, file))
		later(t, data)
		before := archived(t, data)
		refused(file, harness.BeginPlain(t, data, "127.0.0.1:0", role...), "by a newer version of promptspool")
		if !bytes.Equal(before, archived(t, data)) {
			t.Errorf("%s: files have changed", file)
		}
	}

	dsn := postgrestest.Plain(t)
	conn := postgrestest.Connect(t, dsn)
	dump := string(decompress(t, filepath.Join(dir, dumpFile))) + "UPDATE public.promptspool_schema SET number = 99;"
	if _, err := conn.PgConn().Exec(t.Context(), dump).ReadAll(); err != nil {
		t.Fatal(err)
	}
	refused("a database", harness.Begin(t, harness.Program(t), []string{"PROMPTSPOOL_ARCHIVE=" + dsn}, t.TempDir(),
		"127.0.0.1:0", "server"), "restore a dump from before the upgrade")

	backup, err := os.ReadFile(filepath.Join(dir, backupFile))
	if err != nil {
		t.Fatal(err)
	}
	written := strings.Replace(string(backup), "database of format ", "database of format 9", 1)
	newer := harness.WriteFile(t, "backup", written)
	_, errs := harness.Run(t, 1, "restore", "--data", filepath.Join(t.TempDir(), "restored"), newer)
	if !strings.Contains(errs, "a newer version of promptspool wrote this backup") {
		t.Errorf("a backup of a newer release: %s", errs)
	}
}
