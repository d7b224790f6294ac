//go:build linux

package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// generatedClientRuns validates the description that a server serves, generates a client
// from it, and has the client do the README's session.
func generatedClientRuns(t *testing.T, sidecar, server, key string) {
	t.Helper()
	status, description := documentation(t, "http://"+server+"/openapi.json")
	if status != 200 {
		t.Fatalf("the description of the API: %d", status)
	}

	work := harness.NPMModules(t, "testdata/openapi")
	generateClient(t, work, description)
	node := exec.CommandContext(t.Context(), "node", "session.js")
	node.Dir = work
	node.Env = append(os.Environ(), "SIDECAR=http://"+sidecar, "SERVER=http://"+server, "KEY="+key)
	out, err := node.CombinedOutput()
	if err != nil {
		t.Fatalf("the generated client: %v\n%s", err, out)
	}

	var record wire.Record
	if err := json.Unmarshal(out, &record); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if record.Scores[0].Number != 100 || record.Metadata["user_id"] != "ann" || record.Prompt.Name != "generated" {
		t.Errorf("%+v", record)
	}
}

// generateClient makes session.js in a folder of npm's modules. It takes seconds, so the
// result is kept for as long as its inputs do not change.
func generateClient(t *testing.T, work, description string) {
	t.Helper()
	sum := sha256.New()
	sum.Write([]byte(description))
	for _, name := range []string{"package-lock.json", "build.mjs", "session.ts"} {
		content, err := os.ReadFile(filepath.Join(work, name))
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(content)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(cache, "promptspool-npm", "session-"+hex.EncodeToString(sum.Sum(nil)[:8])+".js")

	session := filepath.Join(work, "session.js")
	if content, err := os.ReadFile(kept); err == nil {
		if err := os.WriteFile(session, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}

	if err := os.WriteFile(filepath.Join(work, "openapi.json"), []byte(description), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "node", "build.mjs")
	build.Dir = work
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the client is not generated: %v\n%s", err, strings.TrimSpace(string(out)))
	}
	content, err := os.ReadFile(session)
	if err != nil {
		t.Fatal(err)
	}
	half := kept + ".half"
	if err := os.WriteFile(half, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(half, kept); err != nil {
		t.Fatal(err)
	}
}
