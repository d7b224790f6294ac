//go:build linux

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// certAuthority makes certificates that are good for a day.
type certAuthority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newCertAuthority(t *testing.T) *certAuthority {
	t.Helper()
	a := &certAuthority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.cert = &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.write(a.file, "CERTIFICATE", der)
	return a
}

func (a *certAuthority) write(path, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// issue writes a certificate for this machine, and its key.
func (a *certAuthority) issue() (certFile, keyFile string) {
	a.t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}

	dir := a.t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	a.write(certFile, "CERTIFICATE", der)
	a.write(keyFile, "PRIVATE KEY", private)
	return certFile, keyFile
}

// metrics returns what Prometheus would scrape.
func (n *node) metrics() string {
	n.t.Helper()
	res, err := http.Get("http://" + n.ops + "/metrics")
	if err != nil {
		n.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return string(body)
}

func TestMutualTLSRedactionAndReload(t *testing.T) {
	t.Parallel()
	ca := newCertAuthority(t)
	cert, key := ca.issue()
	server := launch(t, t.TempDir(), "127.0.0.1:0", "server", "--name", "central",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-client-ca-file", ca.file)

	// TLS 1.2, in which a client learns in the handshake that it is refused.
	insecure := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}
	if conn, err := tls.Dial("tcp", server.addr, insecure); err == nil {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("a client without a certificate is served")
		}
		_ = conn.Close()
	}

	mine, mineKey := ca.issue()
	config := written(t, "c.yaml", "sidecar:\n  redact:\n  - builtin: [email]\n")
	sidecar := launch(t, t.TempDir(), "127.0.0.1:0",
		"sidecar", "--name", "pod-1", "--config", config, "--upstream", "https://"+server.addr,
		"--upstream-ca-file", ca.file, "--upstream-cert-file", mine, "--upstream-key-file", mineKey)
	log := func(email string) {
		t.Helper()
		sidecar.track("/rest/track-request", adminKey, map[string]any{
			"function_name":      "f",
			"kwargs":             map[string]any{"to": email},
			"request_response":   map[string]any{},
			"request_start_time": 1,
			"request_end_time":   2,
		})
	}
	until := func(state string, reached func() bool) {
		t.Helper()
		sidecar.eventually(reached, func() string { return "it is not " + state + ":\n" + sidecar.metrics() })
	}

	log("ann@example.com")
	until("delivered over TLS", func() bool {
		return strings.Contains(sidecar.metrics(), "promptspool_forward_sent_total 1\n")
	})
	for _, want := range []string{
		`promptspool_redacted_total{action="mask",rule="email"} 1`, "promptspool_config_generation 1\n",
	} {
		if !strings.Contains(sidecar.metrics(), want) {
			t.Errorf("the metrics lack %s", want)
		}
	}

	rewrite := func(content string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sidecar.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	rewrite("sidecar:\n  log-level: debug\n  redact:\n  - builtin: [nothing]\n")
	until("refused", func() bool {
		return strings.Contains(sidecar.metrics(), "promptspool_config_reload_failures_total 1\n")
	})
	log("ben@example.com") // as before
	rewrite("sidecar:\n  drain: 3s\n")
	until("reloaded", func() bool {
		return strings.Contains(sidecar.metrics(), "promptspool_config_generation 2\n")
	})
	log("cid@example.com") // nothing is redacted any more
	if !strings.Contains(sidecar.metrics(), `promptspool_redacted_total{action="mask",rule="email"} 2`) {
		t.Error("a reload with a fault changed something, or a good one did not")
	}
	if !strings.Contains(sidecar.logged(), "some settings changed that count after a restart only") {
		t.Error("the log does not say that --drain needs a restart")
	}

	printed := say(t, "config", "print", "-o", "json", "--data", sidecar.data)
	if printed.Code != 0 || !strings.Contains(printed.Out, config+":2") {
		t.Errorf("config print of a running process: %+v", printed)
	}

	for place, text := range map[string]string{
		"the sidecar's log": sidecar.logged(),
		"the server's log":  server.logged(),
		"config print":      printed.Out + printed.Err,
		"the metrics":       sidecar.metrics(),
	} {
		if strings.Contains(text, adminKey) || strings.Contains(text, "@example.com") {
			t.Errorf("%s hold a secret:\n%s", place, text)
		}
	}
}

// The commands reach a server that wants a certificate, with one of its authority, and
// explain a missing one.
func TestCommandsReachAServerBehindMutualTLS(t *testing.T) {
	t.Parallel()
	ca := newCertAuthority(t)
	cert, key := ca.issue()
	server := launch(t, t.TempDir(), freePort(t), "server", "--name", "central",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-client-ca-file", ca.file)
	stopped := startSidecar(t, t.TempDir(), freePort(t))
	stopped.track("/rest/track-request", adminKey, chat())
	stopped.kill()

	mine, mineKey := ca.issue()
	variables := func(name string) []string {
		return []string{
			"PROMPTSPOOL_KEY=" + adminKey,
			"PROMPTSPOOL_" + name + "=https://" + server.addr,
			"PROMPTSPOOL_" + name + "_CA_FILE=" + ca.file,
			"PROMPTSPOOL_" + name + "_CERT_FILE=" + mine,
			"PROMPTSPOOL_" + name + "_KEY_FILE=" + mineKey,
		}
	}

	for _, args := range [][]string{
		{"spool", "drain", "--data", stopped.data}, {"requests", "search"}, {"templates", "list"}, {"status"},
	} {
		name := "URL"
		if args[0] == "spool" {
			name = "UPSTREAM"
		}
		out, errs, code := runCommand(t, variables(name), args...)
		if code != 0 || args[0] == "requests" && !strings.Contains(out, "gpt-4-0613-answered") {
			t.Errorf("%v: %d\n%s%s", args, code, out, errs)
		}
	}

	for want, env := range map[string][]string{
		"certificate": variables("URL")[:2], // the system's authorities do not know it
		"go together": variables("URL")[:4], // the key is missing

		// No certificate is shown: the server hangs up, and its reason may be lost on the
		// way.
		"did not answer": append(variables("URL")[:3], "A="),
	} {
		if out, errs, code := runCommand(t, env, "requests", "search"); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s%s", want, code, out, errs)
		}
	}
}
