//go:build linux

package releases

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

// Files of a release, in a folder of testdata with its version as its name.
const (
	serverFile  = "server.tar.zst"     // the data folder of a server on Badger
	backupFile  = "backup"             // of the same server, before it had rows in blocks
	eventsFile  = "events.ndjson.zst"  // exported from it then
	sidecarFile = "sidecar.tar.zst"    // the data folder of a sidecar of it
	dumpFile    = "postgresql.sql.zst" // what pg_dump wrote of a server's database
	serverSaid  = "server.json.zst"    // how the server answered: a value of said
	dumpSaid    = "postgresql.json.zst"
	sidecarSaid = "sidecar.json.zst" // a value of spooled

	conversationFile = "conversation.json.zst" // what sidecar and server said to each other: exchanges
)

// said is how a server answered.
type said struct {
	ScoringKey string     `json:"scoring_key"` // of scope score
	Answers    []answered `json:"answers"`
	Packed     []answered `json:"packed"` // with rows in blocks
	Deletions  []answered `json:"deletions"`
}

// spooled is what a sidecar had in its spool.
type spooled struct {
	Waiting []string        `json:"waiting"` // request ids
	Dead    json.RawMessage `json:"dead"`    // what `dead list` printed
}

// keep writes a file of this version.
func keep(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func keepJSON(t *testing.T, dir, name string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, dir, name, compress(t, text))
}

// scoringKey makes a key that may score.
func scoringKey(t *testing.T, server *harness.Node) string {
	t.Helper()
	made, _ := harness.Run(t, 0, "keys", "create", "--scope", "score", "--name", "judge", "--data", server.Data,
		"-o", "json")
	return harness.Decode(made)["key"].(string)
}

// asked opens what a release left with a program, and asks it all questions.
func asked(t *testing.T, program, dir, name string, all asking) (s said) {
	t.Helper()
	var server *harness.Node
	if name == serverSaid {
		data := unpacked(t, filepath.Join(dir, serverFile))
		server = startOf(t, program, data, "127.0.0.1:0", "server", "--name", "central")
		s.Packed = askAll(t, server, all.packed)
	} else {
		server = startShared(t, program, restored(t, filepath.Join(dir, dumpFile)))
	}
	s.Answers = askAll(t, server, all.questions)
	s.Deletions = askAll(t, server, all.deletions)
	server.Stop()

	return s
}

// writeRelease replaces the files of this version.
func writeRelease(t *testing.T) {
	t.Helper()
	shown, _ := harness.Run(t, 0, "version", "-o", "json")
	dir := filepath.Join("testdata", harness.Decode(shown)["version"].(string))
	if _, err := os.Stat(filepath.Join(dir, "commit")); err == nil {
		t.Fatalf("%s has a commit, so it is released and stays as it is: give the program the next version first", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	keepJSON(t, dir, conversationFile, recorded(t, harness.Program(t)))
	server := harness.StartServer(t, t.TempDir(), harness.FreePort(t))
	fill(t, server)
	writeSidecar(t, server, dir)
	key := scoringKey(t, server)
	backup := filepath.Join(dir, backupFile)
	_ = os.Remove(backup)
	harness.Run(t, 0, "backup", "--data", server.Data, backup)
	events, _ := harness.Run(t, 0, "requests", "export", "--url", "http://"+server.Addr)
	keep(t, dir, eventsFile, compress(t, []byte(events)))
	pack(server)
	server.Stop()
	keep(t, dir, serverFile, compress(t, archived(t, server.Data)))
	said := asked(t, server.Cmd.Path, dir, serverSaid, firstAsked)
	said.ScoringKey = key
	keepJSON(t, dir, serverSaid, said)

	dsn := postgrestest.Plain(t)
	shared := startShared(t, harness.Program(t), dsn)
	fill(t, shared)
	key = scoringKey(t, shared)
	shared.Stop()
	keep(t, dir, dumpFile, dumped(t, dsn))
	said = asked(t, shared.Cmd.Path, dir, dumpSaid, firstAsked)
	said.ScoringKey = key
	keepJSON(t, dir, dumpSaid, said)

	writeMore(t, harness.Program(t), filepath.Join(dir, moreDir))
}

// dumped returns the dump of a database, compressed.
func dumped(t *testing.T, dsn string) []byte {
	t.Helper()
	dump := harness.Tool(t, "pg_dump", "--no-owner", "--rows-per-insert=1000", "--dbname", dsn)
	return compress(t, metaCommand.ReplaceAll([]byte(dump), nil))
}

// metaCommand is what only psql understands, \restrict.
var metaCommand = regexp.MustCompile(`(?m)^\\.*\n`)

func startShared(t *testing.T, program, dsn string) *harness.Node {
	t.Helper()
	n := harness.Begin(t, program, []string{"PROMPTSPOOL_ARCHIVE=" + dsn}, t.TempDir(),
		harness.FreePort(t), "server", "--name", "central")
	if !n.Takes() {
		t.Fatal("the server does not start")
	}
	return n
}

const unknownKey = "a-key-that-no-server-knows-of-more-than-32-characters"

// writeSidecar keeps the folder of a sidecar that has events in each lane.
func writeSidecar(t *testing.T, server *harness.Node, dir string) {
	t.Helper()
	var away, refuses atomic.Bool
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server.Addr})
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case away.Load():
			panic(http.ErrAbortHandler)
		case refuses.Load() && r.URL.Path == "/sync/events":
			w.Header().Set("Promptspool-Version", "0")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"success":false,"error":"invalid","message":"This event is refused."}`))
		default:
			to.ServeHTTP(w, r)
		}
	}))
	defer between.Close()
	sidecar := harness.StartSidecar(t, t.TempDir(), between.Listener.Addr().String(), "--drain", "10ms")
	track := func(key string) string { return sidecar.Track("/rest/track-request", key, harness.Chat()) }

	answers(sidecar, "POST", "/prompt-templates/team%2Fgreet", `{"label":"prod"}`)
	track(harness.AdminKey)
	sidecar.Emptied()
	refuses.Store(true)
	track(harness.AdminKey)
	sidecar.Emptied()
	refuses.Store(false)
	away.Store(true)
	track(unknownKey)
	away.Store(false)
	sidecar.Emptied()

	away.Store(true)
	var left spooled
	for range 3 {
		waiting := track(harness.AdminKey)
		sidecar.Track("/rest/track-score", harness.AdminKey, harness.Score(waiting, 75))
		left.Waiting = append(left.Waiting, waiting)
	}
	sidecar.Stop()
	dead, _ := harness.Run(t, 0, "dead", "list", "-o", "json", "--data", sidecar.Data)
	left.Dead = json.RawMessage(dead)
	keepJSON(t, dir, sidecarSaid, left)
	keep(t, dir, sidecarFile, compress(t, archived(t, sidecar.Data)))
}
