//go:build linux && soak

package durability

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/crashpoint"
)

// A server loses its power each time that it has packed a session, and whatever was not synced with it.
// Every body is read as it was sent, after each cut and once all of them are packed.
func TestAPowerCutWhilePackingChangesNoBody(t *testing.T) {
	t.Parallel()
	for _, system := range harness.FileSystems {
		t.Run(system.Name, func(t *testing.T) {
			disk := harness.NewImage(t, system, t.TempDir(), imageMebibytes, true)
			start := func(at string) *harness.Node {
				program, err := harness.CrashBinary()
				if err != nil {
					t.Fatal(err)
				}
				return harness.Begin(t, program, []string{"PROMPTSPOOL_CRASH_AT=" + at},
					filepath.Join(disk.Mount, "data"), harness.FreePort(t), "server", "--name", "central")
			}

			server := start("")
			if !server.Takes() {
				t.Fatal("the server does not start")
			}
			sent := sendSessions(t, server)
			server.Stop()

			// The first start packs everything that came before; each cut begins with what the last one left.
			for cut := range 6 {
				dying := start(fmt.Sprintf("%s:%d", crashpoint.BodiesPacked, 1+cut%3))
				dying.Eventually(dying.Ended, func() string { return "the server packs nothing" })
				after := disk.AfterPowerCut()
				disk.Detach()
				disk = after

				harness.Run(t, 0, "archive", "check", "--data", filepath.Join(disk.Mount, "data"))
			}

			server = start("")
			if !server.Takes() {
				t.Fatal("the server does not start after the power cuts")
			}
			for id, body := range sent {
				if got := server.Get("/api/public/v2/requests/" + id); !bytes.Contains(got.Body, body) {
					t.Errorf("request %s is %d %.200s", id, got.Status, got.Body)
				}
			}
			server.Stop()
		})
	}
}

// sendSessions logs 20 sessions of 10 calls in turns, each with all that was said before, and returns
// what was said last by the id of each call.
func sendSessions(t *testing.T, server *harness.Node) (sent map[string][]byte) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	sent = make(map[string][]byte)
	said := make([][]any, 20)
	for range 10 {
		for session := range said {
			turn := ""
			for range 100 {
				turn += fmt.Sprintf("%x ", random.Uint64())
			}
			said[session] = append(said[session], map[string]any{"role": "user", "content": turn})
			id := server.Track("/rest/track-request", harness.AdminKey, map[string]any{
				"function_name":      "f",
				"kwargs":             map[string]any{"model": "m", "messages": said[session]},
				"request_response":   map[string]any{},
				"request_start_time": 1687000000, "request_end_time": 1687000001,
				"metadata": map[string]any{"session_id": fmt.Sprint("session-", session)},
			})
			sent[id] = []byte(turn)
		}
	}
	return sent
}
