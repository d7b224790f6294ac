//go:build linux

package delivery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// promptspoolJSON is promptspool with -o json, decoded.
func promptspoolJSON[T any](t *testing.T, code int, args ...string) (v T) {
	t.Helper()
	stdout, _ := harness.Run(t, code, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	return v
}

// deadLetter is an item of `dead list -o json`.
type deadLetter struct {
	Seq       uint64 `json:"sequence"`
	Lane      string `json:"lane"`
	Kind      string `json:"kind"`
	RequestID string `json:"request_id"`
	Cause     string `json:"cause"`
	Reason    string `json:"reason"`
}

// importReport is the output of `requests import -o json`.
type importReport struct {
	Accepted  int `json:"accepted"`
	Duplicate int `json:"duplicate"`
	Refused   []struct {
		Line   int    `json:"line"`
		Reason string `json:"reason"`
	} `json:"refused"`
}

func TestAKilledSidecarsFolderIsCheckedExportedImportedAndDrained(t *testing.T) {
	t.Parallel()
	sidecar := harness.StartSidecar(t, t.TempDir(), harness.FreePort(t))
	var ids []string
	for range 5 {
		ids = append(ids, sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat()))
	}
	running, _ := harness.Run(t, 0, "spool", "export", "--data", sidecar.Data)

	// Beside the running sidecar, its folder is only read.
	out, _ := harness.Run(t, 0, "spool", "check", "--data", sidecar.Data)
	if !strings.Contains(out, "Sound: 5 events") {
		t.Errorf("beside the running sidecar: %s", out)
	}
	_, errs := harness.Run(t, 1, "spool", "repair", "--data", sidecar.Data)
	if !strings.Contains(errs, "stop it first") {
		t.Errorf("repair beside a running sidecar: %s", errs)
	}
	_, errs = harness.Run(t, 1, "spool", "drain", "--data", sidecar.Data, "--upstream", "http://127.0.0.1:1")
	if !strings.Contains(errs, "stop it first") {
		t.Errorf("drain beside a running sidecar: %s", errs)
	}
	sidecar.Kill()

	out, _ = harness.Run(t, 0, "spool", "check", "--data", sidecar.Data)
	if !strings.Contains(out, "Sound: 5 events") {
		t.Errorf("the killed sidecar's folder: %s", out)
	}
	file := filepath.Join(t.TempDir(), "events")
	_, errs = harness.Run(t, 0, "spool", "export", "--data", sidecar.Data, file)
	if !strings.Contains(errs, "5 events of 1 key,") {
		t.Errorf("export says %s", errs)
	}
	stopped, err := os.ReadFile(file)
	if err != nil || string(stopped) != running {
		t.Errorf("the export of the killed sidecar differs from that of the running one (%v):\n%s\n%s",
			err, stopped, running)
	}

	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	url := "http://" + server.Addr
	if done := promptspoolJSON[importReport](t, 0, "requests", "import", file, "--url", url); done.Accepted != 5 {
		t.Errorf("import: %+v", done)
	}
	for _, id := range ids {
		server.Record(id, harness.Events(1))
	}
	if done := promptspoolJSON[importReport](t, 0, "requests", "import", file, "--url", url); done.Duplicate != 5 {
		t.Errorf("imported again: %+v", done)
	}
	harness.Run(t, 0, "spool", "repair", "--data", sidecar.Data, "--apply")
	harness.Run(t, 0, "spool", "drain", "--data", sidecar.Data, "--upstream", url)
	if got := server.Total(nil); got != 5 {
		t.Errorf("%d records, want 5", got)
	}
	if out, _ := harness.Run(t, 0, "spool", "status", "--data", sidecar.Data); !strings.Contains(out, "0 events") {
		t.Errorf("after the drain: %s", out)
	}
}

func TestImportNamesTheLinesThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	file := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(file, []byte("{}\nno event\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := promptspoolJSON[importReport](t, 1, "requests", "import", file, "--url", "http://"+server.Addr)
	if len(done.Refused) != 2 || done.Refused[1].Line != 2 || done.Refused[1].Reason == "" {
		t.Errorf("%+v", done)
	}
}

func TestDrainGivesUpAndSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	address := harness.FreePort(t)
	sidecar := harness.StartSidecar(t, t.TempDir(), address)
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Kill()
	_, errs := harness.Run(t, 1, "spool", "drain", "--data", sidecar.Data, "--upstream", "http://"+address,
		"--timeout", "200ms")
	if !strings.Contains(errs, "1 event left in the spool") {
		t.Errorf("drain says %s", errs)
	}
}
