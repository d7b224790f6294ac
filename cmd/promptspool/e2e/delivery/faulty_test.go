//go:build linux

package delivery

import (
	"crypto/tls"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// TestALostAnswerAndALoginPageLoseNothing has two faults between a sidecar and a server. During
// each, requests are logged and scored twice; when the fault is over each must be at the server
// once, with the newer score. Package proxy has the other faults.
func TestALostAnswerAndALoginPageLoseNothing(t *testing.T) {
	t.Parallel()
	harness.WatchForRaces(t)
	server := harness.StartPlainServer(t, harness.FreePort(t))
	b := startBetween(t, server.Addr)
	sidecar := harness.StartSidecar(t, t.TempDir(), b.addr)
	total := 0

	for _, tt := range []struct {
		scene string
		fault mischief
	}{
		{"the connection is reset after the batch was applied", resetsAfterApplying},
		{"a login page with 200", loginPage},
	} {
		ok := t.Run(tt.scene, func(t *testing.T) {
			sidecar.T, server.T = t, t
			b.set(tt.fault)

			var ids []string
			for i := range 12 {
				id := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
				sidecar.Track("/rest/track-score", harness.AdminKey, harness.Score(id, i))
				sidecar.Track("/rest/track-score", harness.AdminKey, harness.Score(id, 100-i))
				ids = append(ids, id)
			}
			sidecar.Eventually(
				func() bool { return b.timesMet() >= 2 },
				func() string { return "the fault is not met" },
			)

			b.set(nil)
			total += len(ids)
			for i, id := range ids {
				r := server.Record(id, func(r wire.Record) bool { return len(r.Events) >= 3 })
				if len(r.Events) != 3 || len(r.Scores) != 1 || int(r.Scores[0].Number) != 100-i {
					t.Errorf("%s has %d events and scores %v; want 3, and %d", id, len(r.Events), r.Scores, 100-i)
				}
			}

			sidecar.Emptied()
			if s := sidecar.SpoolStatus(); s["held"] != 0.0 || s["dead"] != 0.0 || s["gaps"] != 0.0 {
				t.Errorf("the spool says %v", s)
			}
			if n := server.Total(nil); n != total {
				t.Errorf("%d records are at the server; want %d", n, total)
			}
		})
		if !ok {
			t.Fatalf("%s: the other fault is not tried", tt.scene)
		}
	}
	sidecar.T, server.T = t, t
}

func TestACertificateThatExpiredIsNamedAndLosesNothing(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, harness.FreePort(t))
	var served atomic.Pointer[tls.Certificate]
	authority := harness.NewCertAuthority(t)
	serve := func(until time.Time) {
		t.Helper()
		cert, err := tls.LoadX509KeyPair(authority.IssueUntil(until))
		if err != nil {
			t.Fatal(err)
		}
		served.Store(&cert)
	}
	serve(time.Now().Add(-time.Minute))
	web := httptest.NewUnstartedServer(&between{t: t, next: server.Addr})
	web.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*served.Load()}}, nil
	}}
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	defer web.Close()

	sidecar := harness.Begin(t, harness.Program(t), nil, t.TempDir(), "127.0.0.1:0",
		"sidecar", "--upstream", web.URL, "--upstream-ca-file", authority.File)
	if !sidecar.Takes() {
		t.Fatal(sidecar.Logged())
	}
	id := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Eventually(
		func() bool { return strings.Contains(sidecar.Logged(), "certificate has expired") },
		func() string { return "the log does not say that the certificate expired" },
	)

	if n := sidecar.Waiting(); n != 1 {
		t.Errorf("%d events wait; want 1", n)
	}
	serve(time.Now().Add(time.Hour))
	server.Record(id, harness.Events(1))
	sidecar.Emptied()
}
