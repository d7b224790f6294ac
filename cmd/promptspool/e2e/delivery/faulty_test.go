//go:build linux

package delivery

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// TestWhateverHappensBetweenEverythingArrivesOnce has one fault after the other between a
// sidecar and a server. During each, requests are logged and scored twice; when the fault
// is over each must be at the server once, with the newer score.
func TestWhateverHappensBetweenEverythingArrivesOnce(t *testing.T) {
	t.Parallel()
	harness.WatchForRaces(t)
	server := harness.StartPlainServer(t, harness.FreePort(t))
	b := startBetween(t, server.Addr)
	sidecar := harness.StartSidecar(t, t.TempDir(), b.addr)
	total := 0

	for _, tt := range []struct {
		scene string
		fault mischief
		most  int // calls during the fault: what the backoff allows, and no more
	}{
		{"no fault", nil, 0},
		{"the server hangs", hangs, 8},
		{"the connection is reset after the batch was applied", resetsAfterApplying, 60},
		{"200 with a count that lies", liesAboutTheCount, 60},
		{"a login page with 200", html(200), 8},
		{"a redirect to a login page", html(302), 8},
		{"a proxy's 403", html(403), 8},
		{"a proxy's 502", html(502), 8},
		{"a proxy's 413 for large batches", takesSmallOnes(1500, html(413)), 1000},
		{"the server's 413 for large batches", takesSmallOnes(1500, ours(413, "too_large", "")), 1000},
		{"429 with seconds", ours(429, "too_many_requests", "1"), 8},
		{"429 with a date", ours(429, "too_many_requests", "date"), 8},
		{"503 with seconds", ours(503, "unavailable", "1"), 8},
		{"500", ours(500, "internal", ""), 60},
		{"the answer is cut short", cutsTheAnswerShort, 60},
		{"slow reads and a slow answer", isSlow, 1000},
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

			if tt.fault != nil {
				sidecar.Eventually(
					func() bool { return b.timesMet() >= 2 || sidecar.Waiting() == 0 },
					func() string { return "the fault is not met" },
				)

				met := b.timesMet()
				if met == 0 || met > tt.most {
					t.Errorf("%d batches met the fault; want 1 to %d", met, tt.most)
				}
			}

			b.set(nil)
			total += len(ids)
			for i, id := range ids {
				r := server.Record(id, func(r wire.Record) bool { return len(r.Events) >= 3 })
				if len(r.Events) != 3 || len(r.Scores) != 1 || int(r.Scores[0].Score) != 100-i {
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
			t.Fatalf("%s: the other faults are not tried", tt.scene)
		}
	}
	sidecar.T, server.T = t, t
}

// One account's part of the database is away for long. Another account of the same sidecar has
// nothing to do with it.
func TestAnAccountThatTheServerCannotServeHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, harness.FreePort(t))
	other := harness.AccountKeys(t, server, 1)[0]
	b := startBetween(t, server.Addr)
	sidecar := harness.StartSidecar(t, t.TempDir(), b.addr)
	b.set(failsFor(other))

	sidecar.Track("/rest/track-request", other, harness.Chat())
	sidecar.Eventually(
		func() bool { return sidecar.Metric("promptspool_forward_retries_total") > 0 },
		func() string { return "the fault is not met" },
	)
	var took []time.Duration
	for range harness.Rounds(t, 20, 0.1) {
		begun := time.Now()
		server.Record(sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat()), harness.Events(1))
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	p95 := took[len(took)*95/100]
	t.Logf("%d calls of the other account were at the server within %v (p95), %v at most",
		len(took), p95, took[len(took)-1])
	if p95 > time.Second {
		t.Errorf("calls of the other account take %v (p95) to the server", p95)
	}
	if n := sidecar.Waiting(); n < 1 {
		t.Errorf("%d events wait; want those of the other account", n)
	}
}

// A batch that is cut on its way is no longer valid zstd. The server refuses it for its
// content, as it must, and the sidecar must not bury what is whole on its own side.
func TestABatchThatIsCutOnItsWayPausesAndLosesNothing(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, harness.FreePort(t))
	b := startBetween(t, server.Addr)
	sidecar := harness.StartSidecar(t, t.TempDir(), b.addr)
	id := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	server.Record(id, harness.Events(1))

	b.set(cutsTheBatchShort)
	for range 8 {
		sidecar.Track("/rest/track-score", harness.AdminKey, harness.Score(id, 1))
	}
	sidecar.Eventually(
		func() bool { return strings.Contains(sidecar.Logged(), "do not understand each other") },
		func() string { return "the sidecar does not pause" },
	)

	b.set(nil)
	if s := sidecar.SpoolStatus(); s["dead"].(float64) > 5 {
		t.Errorf("the sidecar buried %v events before it suspected the contract; want 5 at most", s["dead"])
	}

	harness.Run(t, 0, "dead", "replay", "--all", "--data", sidecar.Data)
	sidecar.Kill() // the pause would last half a minute
	sidecar = harness.StartSidecar(t, sidecar.Data, b.addr)
	sidecar.Emptied()
	if r := server.Record(id, harness.Events(9)); len(r.Scores) != 1 {
		t.Errorf("scores are %v", r.Scores)
	}
}

func TestACertificateThatExpiredIsNamedAndLosesNothing(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, harness.FreePort(t))
	var served atomic.Pointer[tls.Certificate]
	authority, file := newAuthority(t)
	served.Store(authority.certificate(t, time.Now().Add(-time.Minute)))
	web := httptest.NewUnstartedServer(&between{t: t, next: server.Addr, over: make(chan struct{})})
	web.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*served.Load()}}, nil
	}}
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	defer web.Close()

	sidecar := harness.Begin(t, harness.Program(t), nil, t.TempDir(), "127.0.0.1:0",
		"sidecar", "--upstream", web.URL, "--upstream-ca-file", file)
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
	served.Store(authority.certificate(t, time.Now().Add(time.Hour)))
	server.Record(id, harness.Events(1))
	sidecar.Emptied()
}

// authority signs certificates for 127.0.0.1.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes an authority, and a file with its certificate.
func newAuthority(t *testing.T) (a authority, file string) {
	t.Helper()
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.cert = &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "the tests' authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}

	file = filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return a, file
}

// certificate signs a certificate that is valid until a time.
func (a authority) certificate(t *testing.T, until time.Time) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     until,
	}, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
