package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

// written writes a file into a folder of its own and returns its path.
func written(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryFaultOfAConfigurationIsToldWithItsLine(t *testing.T) {
	withoutVariables(t)

	for _, tt := range []struct{ name, file, want string }{
		{"unknown settings, a repeated one and an unknown section",
			"sidecar:\n  spool_bytes_max: 1\n  frob: 1\n  drain: 1s\n  drain: 2s\nmore:\n  a: 1\n",
			"F:2: there is no setting \"spool_bytes_max\" of sidecar; did you mean spool-bytes-max?\n" +
				"F:3: there is no setting \"frob\" of sidecar; `promptspool config print` lists all\n" +
				"F:5: drain was set before, in line 4\nF:6: there is no section \"more\"; there are: sidecar, server"},
		{"bad values of both roles",
			"sidecar:\n  drain: 5\n  spool-bytes-max: many\nserver:\n  key-calls-max: -1\n",
			"F:3: spool-bytes-max: \"many\" is not a size such as 64MiB or 8GiB\n" +
				"F:2: drain: \"5\" is not a duration such as 30s or 90d\n" +
				"F:5: key-calls-max: \"-1\" is not a number from 1 to 1000000"},
		{"an upstream in clear", "sidecar:\n  upstream: http://server:8788\n",
			"F:2: upstream: \"http://server:8788\" would send keys and records in clear; " +
				"take https://, or allow it with --upstream-plaintext"},
		{"a public listener", "server:\n  listen: :8788\n  ops-listen: 0.0.0.0:9788\n",
			"F:2: listen: \":8788\" is reached from other machines; take 127.0.0.1, " +
				"or allow it with --listen-public\n" +
				"F:3: ops-listen: \"0.0.0.0:9788\" is reached from other machines; take 127.0.0.1, " +
				"or allow it with --listen-public"},
		{"a public listener for exporters, and no choice", "sidecar:\n  otlp-listen: :4318\n  otlp-keep: some\n",
			"F:2: otlp-listen: \":4318\" is reached from other machines; take 127.0.0.1, " +
				"or allow it with --listen-public\nF:3: otlp-keep: \"some\" is not one of genai, all"},
		{"half a certificate", "server:\n  tls-cert-file: /no/c\n",
			"F:2: tls-cert-file and --tls-key-file (or PROMPTSPOOL_TLS_KEY_FILE) go together; one of them is missing"},
		{"insecure cookies over TLS", "server:\n  cookies-insecure: true\n  tls-cert-file: /no/c\n  tls-key-file: k\n",
			"F:3: tls-cert-file: open /no/c: no such file or directory\n" +
				"F:2: cookies-insecure: \"true\" would only do harm with --tls-cert-file, " +
				"where everybody comes over HTTPS; leave one of them out"},
		{"authorities without a certificate of our own, and not there", "server:\n  tls-client-ca-file: /no/such\n",
			"F:2: tls-client-ca-file: open /no/such: no such file or directory\n" +
				"F:2: tls-client-ca-file needs --tls-cert-file and --tls-key-file"},
		{"keys of usage that no label tells apart", "server:\n  usage-metrics: true\n  usage-metadata: [a.b, a-b]\n",
			"F:3: usage-metadata: \"a.b, a-b\" are keys of which two would have the label metadata_a_b; " +
				"leave one of them out"},
		{"keys of usage that nothing counts", "server:\n  usage-metadata: [a]\n",
			"F:2: usage-metadata: \"a\" counts nothing without --usage-metrics"},
		{"a key twice", "server:\n  bootstrap-key: a\n  bootstrap-key-file: /b\n",
			"F:2: bootstrap-key and F:3: bootstrap-key-file are both given; leave one out"},
		{"a key in no file", "server:\n  bootstrap-key-file: /no/such\n",
			"F:2: bootstrap-key-file: open /no/such: no such file or directory"},
		{"roles that are none, and an issuer in the clear",
			"server:\n  oidc-issuer: http://id.example.com\n  oidc-role: [a, b=king@app, c=owner@No]\n",
			"F:3: oidc-role: \"a\" is not GROUP=ROLE@PROJECT, with a role and a project's name, " +
				"such as staff=viewer@default\n" +
				"F:3: oidc-role: \"b=king@app\" is not GROUP=ROLE@PROJECT, with a role and a project's name, " +
				"such as staff=viewer@default\n" +
				"F:3: oidc-role: \"c=owner@No\" is not GROUP=ROLE@PROJECT, with a role and a project's name, " +
				"such as staff=viewer@default\n" +
				"F:2: oidc-issuer: \"http://id.example.com\" is not a URL such as https://id.example.com/realms/staff"},
		{"less disk than spool", "sidecar:\n  disk-max: 1MiB\n",
			"F:2: disk-max: \"1MiB\" is less than --spool-bytes-max, 1GiB; the data folder holds the spool"},
		{"no switch", "sidecar:\n  upstream-plaintext: perhaps\n",
			"F:2: upstream-plaintext: \"perhaps\" is not true or false"},
		{"a list where one value goes", "sidecar:\n  drain: [1s]\n  listen:\n  allow-host: [{a: b}]\n",
			"F:2: drain takes one value\nF:3: listen has no value; give one, or take the line out\n" +
				"F:4: allow-host must be a list of words"},
		{"a list", "- sidecar\n", "F:1: the file must hold settings of the form name: value"},
		{"two documents", "sidecar: {}\n---\nserver: {}\n",
			"F:1: there is more than one document, or something that is not YAML after the first; keep one"},
		{"no YAML", "sidecar: [\n", "F is not YAML: line 1: did not find expected node content"},
	} {
		path := written(t, "f.yaml", tt.file)
		got := say(t, "config", "check", path)
		got.Err = strings.ReplaceAll(got.Err, path, "F")
		Equal(t, tt.name, got,
			said{Code: 2, Err: "promptspool: " + tt.want + "\nSee `promptspool config check --help`.\n"})
	}
}

func TestAGoodConfiguration(t *testing.T) {
	withoutVariables(t)
	t.Setenv("PROMPTSPOOL_DRAIN", "wrong, but the file is looked at")
	path := written(t, "f.yaml", "# a sidecar\n"+
		"sidecar:\n  drain: 5s\n  upstream: https://server\n  allow-host: [a, b]\nserver:\n")
	Equal(t, "check", say(t, "config", "check", path), said{Out: path + " is good.\n"})

	empty := written(t, "f.yaml", "\n")
	Equal(t, "an empty file", say(t, "config", "check", empty), said{Code: 1,
		Err: "promptspool: " + empty + " has neither a section sidecar nor a section server, so it sets nothing\n"})
}

func TestFlagsComeBeforeVariablesBeforeTheFileBeforeDefaults(t *testing.T) {
	withoutVariables(t)
	path := written(t, "f.yaml", "sidecar:\n  drain: 1s\n  name: file\n  listen: 127.0.0.1:1\n"+
		"  allow-host: [a, b]\n  upstream: https://file\n")
	t.Setenv("PROMPTSPOOL_NAME", "variable")
	t.Setenv("PROMPTSPOOL_LISTEN", "127.0.0.1:2")
	t.Setenv("PROMPTSPOOL_CONFIG", path)
	t.Setenv("PROMPTSPOOL_DATA", "variable")

	got := map[string]string{}
	args := []string{"promptspool", "sidecar", "--listen", "127.0.0.1:3"}
	err := config.Evaluate(newApp, args, func(c *cli.Context) error {
		role, err := sidecarRoleOf(c)
		Equal(t, "what it would run with",
			[]any{role.drain.String(), role.name, role.listen.At, role.allowHosts, role.upstream, role.data},
			[]any{"1s", "variable", "127.0.0.1:3", []string{"a", "b"}, "https://file", "variable"})
		for _, s := range config.SettingsOf(c) {
			got[s.Setting] = s.Value + " " + s.From
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"drain": "1s " + path + ":2", "name": "variable PROMPTSPOOL_NAME", "listen": "127.0.0.1:3 --listen",
		"allow-host": "a, b " + path + ":5", "log-level": "info default", "config": path + " PROMPTSPOOL_CONFIG",
	} {
		Equal(t, name, got[name], want)
	}
}

func TestAVariableThatIsMisspeltIsTold(t *testing.T) {
	withoutVariables(t)
	for _, variable := range []string{
		"PROMPTSPOOL_UPSTREM", "PROMPTSPOOL_APIKEY", // a slip
		"PROMPTSPOOL_NAME", "PROMPTSPOOL_KEY", "PROMPTSPOOL_BOOTSTRAP_KEY", // of this or another command
		"PROMPTSPOOL_SERVICE_HOST", "PROMPTSPOOL_PORT_8788_TCP_ADDR", "PROMPTSPOOL_SERVER_PORT", // of Kubernetes
		"UPSTREM",
	} {
		t.Setenv(variable, "x")
	}

	err := config.Evaluate(newApp, []string{"promptspool", "sidecar"}, func(c *cli.Context) error {
		Equal(t, "told", config.Read(c).Misspelt(), map[string]string{
			"PROMPTSPOOL_UPSTREM": "PROMPTSPOOL_UPSTREAM",
			"PROMPTSPOOL_APIKEY":  "PROMPTSPOOL_API_KEY",
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestUpKnowsWhereItsSettingsComeFrom(t *testing.T) {
	withoutVariables(t)
	t.Setenv("PROMPTSPOOL_NAME", "variable")

	got := map[string]string{}
	args := []string{"promptspool", "up", "--demo", "--server-listen", "127.0.0.1:3"}
	err := config.Evaluate(newApp, args, func(c *cli.Context) error {
		for _, s := range config.SettingsOf(c) {
			got[s.Setting] = s.Value + " " + s.From
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"demo": "true --demo", "name": "variable PROMPTSPOOL_NAME", "server-listen": "127.0.0.1:3 --server-listen",
		"listen": config.SidecarListen + " default",
	} {
		Equal(t, name, got[name], want)
	}
}

// A service is started in / and its settings are elsewhere.
func TestARelativeFileIsBesideTheConfigurationThatNamesIt(t *testing.T) {
	withoutVariables(t)
	dir := t.TempDir()
	key := strings.Repeat("k", 40)
	for name, content := range map[string]string{
		"config.yaml": "server:\n  data: data\n  bootstrap-key-file: bootstrap-key\n", "bootstrap-key": key,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	file := filepath.Join(dir, "config.yaml")
	if got := say(t, "config", "check", file); got.Code != 0 {
		t.Errorf("from another folder: %+v", got)
	}
	// The flag of a command line is beside whoever gives it.
	t.Chdir(t.TempDir())
	if got := say(t, "server", "--data", dir, "--bootstrap-key-file", "bootstrap-key"); got.Code != 2 {
		t.Errorf("a file that is not in the working directory: %+v", got)
	}
}

// A key file is often written by an editor or a script.
func TestAKeyFileWithMoreThanItsKey(t *testing.T) {
	withoutVariables(t)
	key := strings.Repeat("k", 40)
	for content, code := range map[string]int{
		key: 0, "\ufeff" + key + "\r\n": 0, `"` + key + `"`: 2, "'" + key + "'\n": 2, key + "\n" + key: 2,
	} {
		file := written(t, "key", content)
		path := written(t, "f.yaml", "server:\n  data: data\n  bootstrap-key-file: "+file+"\n")
		got := say(t, "config", "check", path)
		told := strings.Contains(got.Out+got.Err, "must hold one line, without quotes")
		if told != (code > 0) || (got.Code > 0) != (code > 0) {
			t.Errorf("%q: %+v", content, got)
		}
	}
}

func TestTheFolderOfAnotherUserIsNamed(t *testing.T) {
	file := filepath.Join(written(t, "file", ""), "below")
	if got := say(t, "server", "--data", file); !strings.Contains(got.Err, "--data "+file+": ") {
		t.Errorf("%+v", got)
	}
}

func TestNoSecretIsPrinted(t *testing.T) {
	withoutVariables(t)
	path := written(t, "f.yaml", "server:\n  bootstrap-key: a-key-that-nobody-may-see-anywhere-else\n")
	got := say(t, "config", "print", path)
	if got.Code != 0 || strings.Contains(got.Out, "nobody") || !strings.Contains(got.Out, "[secret]") {
		t.Errorf("config print: %+v", got)
	}
	app := newApp(io.Discard, io.Discard)
	for _, role := range config.Sections {
		for name := range config.RoleFlags(app, role) {
			// A flag that sounds like a secret is hidden, or holds only a path or a bound.
			sounds := strings.Contains(name, "secret") || strings.Contains(name, "key") ||
				strings.Contains(name, "password")
			isHarmless := strings.HasSuffix(name, "-file") || strings.HasSuffix(name, "-max")
			if sounds && !config.IsSecret(name) && !isHarmless {
				t.Errorf("%s would be shown", name)
			}
		}
	}
}

func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"sidecar:\n  drain: 1s\n", "server: {listen: [a]}\n", "a: &a [*a]\n",
		"sidecar:\n  redact:\n  - builtin: [email]\n",
	} {
		f.Add([]byte(seed))
	}
	app := newApp(io.Discard, io.Discard)
	f.Fuzz(func(t *testing.T, content []byte) {
		_, _ = config.ParseFile(app, "f", content) // it ends, without a panic
	})
}
