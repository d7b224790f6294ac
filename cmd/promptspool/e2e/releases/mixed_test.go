//go:build linux && soak

package releases

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// Sidecars of each release speak to a server of this version, and the other way round. Servers are
// replaced while the sidecar has a backlog.
func TestSidecarsAndServersOfTwoReleasesLoseNothing(t *testing.T) {
	for _, release := range harness.Releases(t) {
		now := harness.Program(t)
		if *update {
			keepJSON(t, filepath.Join("testdata", release.Version), conversationFile, recorded(t, release.Program))
		}
		t.Run("sidecar of "+release.Version, func(t *testing.T) { mixed(t, release.Program, now, now, true) })
		t.Run("server of "+release.Version, func(t *testing.T) { mixed(t, now, release.Program, now, false) })
	}
}

// mixed has a sidecar speak to a server, and then to one of another version on the same data.
func mixed(t *testing.T, sidecar, older, newer string, isOldSidecar bool) {
	address, data := harness.FreePort(t), t.TempDir()
	server := startOf(t, older, data, address, "server", "--name", "central")
	k := &talk{T: t, program: sidecar, sent: map[string]int{}}
	k.between = newBetween(t, address, keysAt(t, older, server))
	k.converse(t.TempDir())
	k.setAside(true)
	k.arrived(server)

	// The server is replaced, and the sidecar killed, while an event waits and others are written.
	oracle := harness.StartOracle(t, harness.AdminKey)
	written := 0
	writes := func(more int) {
		written += more
		k.sidecar.Eventually(func() bool { return oracle.Count().Acked >= written },
			func() string { return fmt.Sprintf("of %d writes: %+v", written, oracle.Count()) })
	}
	oracle.Load(k.sidecar, 2, 1000, 0)
	writes(100)
	server.Stop()
	writes(200)
	k.sidecar.Kill()
	k.begin(k.sidecar.Data)
	oracle.Load(k.sidecar, 2, 1000, 0)
	writes(100)
	server = startOf(t, newer, data, address, "server", "--name", "central")
	writes(200)
	oracle.Halt()

	server.Eventually(func() bool { return oracle.Verify(server).Lost == 0 },
		func() string { return fmt.Sprintf("not all arrives: %+v", oracle.Verify(server)) })
	oracle.WantAll(server)
	k.arrived(server)
	k.fetches("fetch", "Welcome Ann.")
	fleet := func() string { return string(server.Get("/sync/fleet").Body) }
	server.Eventually(func() bool { return strings.Contains(fleet(), `"name":"pod-1"`) }, fleet)
	k.rightsOfTomorrow(server, isOldSidecar)

	// A server that knows the kind takes what has waited.
	k.between.upgraded.Store(true)
	k.sent[k.waiting]++
	k.delivered()
	k.sidecar.Emptied()
	k.setAside(false)
	k.arrived(server)
}

// rightsOfTomorrow has an app use a key with a right that the sidecar does not know. The sidecar is a fresh
// one: it has no verdict of the key from before.
func (k *talk) rightsOfTomorrow(server *harness.Node, isOldSidecar bool) {
	k.Helper()
	k.between.annotate.Store(true)
	defer k.between.annotate.Store(false)
	fresh := &talk{T: k.T, program: k.program, between: k.between, sent: map[string]int{}}
	fresh.begin(k.T.TempDir())
	fresh.calls("log", "/rest/track-request", harness.Chat(), 200)
	fresh.writes()
	fresh.delivered()
	for id, events := range fresh.sent {
		server.Record(id, harness.Events(events))
	}
	fresh.fetches("fetch", "Welcome Ann.")

	// A sidecar of 0.1.0 cannot read the verdict: it takes writes, and leaves them to the server.
	status := 503
	if !isOldSidecar {
		status = 403
		fresh.known("log")
	}
	fresh.calls("log", "/prompt-templates/team%2Fgreet", map[string]any{"label": "prod"}, status)
	fresh.sidecar.Stop()
}

// arrived fails unless a server has every event once.
func (k *talk) arrived(server *harness.Node) {
	k.Helper()
	for id, events := range k.sent {
		server.Record(id, harness.Events(events))
	}
	spans := server.Get("/api/public/v2/traces/" + trace)
	if n := strings.Count(string(spans.Body), `"span_id"`); n != 2 {
		k.Errorf("%d spans of 2: %s", n, spans.Body)
	}
}
