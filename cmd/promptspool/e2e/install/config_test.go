//go:build linux

package install

import (
	"crypto/tls"
	"os"
	"strings"
	"syscall"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestMutualTLSRedactionAndReload(t *testing.T) {
	t.Parallel()
	ca := harness.NewCertAuthority(t)
	cert, key := ca.Issue()
	server := harness.Launch(t, t.TempDir(), "127.0.0.1:0", "server", "--name", "central",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-client-ca-file", ca.File)

	// TLS 1.2, in which a client learns in the handshake that it is refused.
	insecure := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}
	if conn, err := tls.Dial("tcp", server.Addr, insecure); err == nil {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("a client without a certificate is served")
		}
		_ = conn.Close()
	}

	mine, mineKey := ca.Issue()
	config := harness.WriteFile(t, "c.yaml", "sidecar:\n  redact:\n  - builtin: [email]\n")
	sidecar := harness.Launch(t, t.TempDir(), "127.0.0.1:0",
		"sidecar", "--name", "pod-1", "--config", config, "--upstream", "https://"+server.Addr,
		"--upstream-ca-file", ca.File, "--upstream-cert-file", mine, "--upstream-key-file", mineKey)
	log := func(email string) {
		t.Helper()
		sidecar.Track("/rest/track-request", harness.AdminKey, map[string]any{
			"function_name":      "f",
			"kwargs":             map[string]any{"to": email},
			"request_response":   map[string]any{},
			"request_start_time": 1,
			"request_end_time":   2,
		})
	}
	until := func(state string, reached func() bool) {
		t.Helper()
		sidecar.Eventually(reached, func() string { return "it is not " + state + ":\n" + sidecar.Metrics() })
	}

	log("ann@example.com")
	until("delivered over TLS", func() bool {
		return strings.Contains(sidecar.Metrics(), "promptspool_forward_sent_total 1\n")
	})
	for _, want := range []string{
		`promptspool_redacted_total{action="mask",rule="email"} 1`, "promptspool_config_generation 1\n",
	} {
		if !strings.Contains(sidecar.Metrics(), want) {
			t.Errorf("the metrics lack %s", want)
		}
	}

	rewrite := func(content string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sidecar.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	rewrite("sidecar:\n  log-level: debug\n  redact:\n  - builtin: [nothing]\n")
	until("refused", func() bool {
		return strings.Contains(sidecar.Metrics(), "promptspool_config_reload_failures_total 1\n")
	})
	log("ben@example.com") // as before
	rewrite("sidecar:\n  drain: 3s\n")
	until("reloaded", func() bool {
		return strings.Contains(sidecar.Metrics(), "promptspool_config_generation 2\n")
	})
	log("cid@example.com") // nothing is redacted any more
	if !strings.Contains(sidecar.Metrics(), `promptspool_redacted_total{action="mask",rule="email"} 2`) {
		t.Error("a reload with a fault changed something, or a good one did not")
	}
	if !strings.Contains(sidecar.Logged(), "some settings changed that count after a restart only") {
		t.Error("the log does not say that --drain needs a restart")
	}

	printed := harness.Say(t, "config", "print", "-o", "json", "--data", sidecar.Data)
	if printed.Code != 0 || !strings.Contains(printed.Out, config+":2") {
		t.Errorf("config print of a running process: %+v", printed)
	}

	for place, text := range map[string]string{
		"the sidecar's log": sidecar.Logged(),
		"the server's log":  server.Logged(),
		"config print":      printed.Out + printed.Err,
		"the metrics":       sidecar.Metrics(),
	} {
		if strings.Contains(text, harness.AdminKey) || strings.Contains(text, "@example.com") {
			t.Errorf("%s hold a secret:\n%s", place, text)
		}
	}
}

// The commands reach a server that wants a certificate, with one of its authority, and
// explain a missing one.
func TestCommandsReachAServerBehindMutualTLS(t *testing.T) {
	t.Parallel()
	ca := harness.NewCertAuthority(t)
	cert, key := ca.Issue()
	server := harness.Launch(t, t.TempDir(), harness.FreePort(t), "server", "--name", "central",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-client-ca-file", ca.File)
	stopped := harness.StartSidecar(t, t.TempDir(), harness.FreePort(t))
	stopped.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	stopped.Kill()

	mine, mineKey := ca.Issue()
	variables := func(name string) []string {
		return []string{
			"PROMPTSPOOL_KEY=" + harness.AdminKey,
			"PROMPTSPOOL_" + name + "=https://" + server.Addr,
			"PROMPTSPOOL_" + name + "_CA_FILE=" + ca.File,
			"PROMPTSPOOL_" + name + "_CERT_FILE=" + mine,
			"PROMPTSPOOL_" + name + "_KEY_FILE=" + mineKey,
		}
	}

	for _, args := range [][]string{
		{"spool", "drain", "--data", stopped.Data}, {"requests", "search"}, {"templates", "list"}, {"status"},
	} {
		name := "URL"
		if args[0] == "spool" {
			name = "UPSTREAM"
		}
		out, errs, code := harness.RunWith(t, variables(name), args...)
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
		if out, errs, code := harness.RunWith(t, env, "requests", "search"); code == 0 ||
			!strings.Contains(errs, want) {
			t.Errorf("%s: %d %s%s", want, code, out, errs)
		}
	}
}
