//go:build linux

package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestNoOutputOfAServerTellsThePasswordOfItsDatabase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	secret := filepath.Join(t.TempDir(), "archive")
	const url = "postgres://ann:geheim@127.0.0.1:9/records?connect_timeout=1&sslpassword=geheim"
	for path, text := range map[string]string{
		file:   "server:\n  data: " + t.TempDir() + "\n  archive: " + url + "\n",
		secret: url + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for _, args := range [][]string{
		{"config", "print", file},
		{"server", "--archive", strings.Replace(url, "postgres:", "mysql:", 1), "--data", t.TempDir()},
		{"server", "--archive", url + "&sslmode=bogus", "--data", t.TempDir()},
		{"server", "--archive", url, "--archive-file", secret, "--data", t.TempDir()},
		{"archive", "copy", "--from", url + "&sslmode=bogus", "--to", "badger:" + t.TempDir()},
		{"archive", "copy", "--from", strings.Replace(url, "postgres:", "mysql:", 1), "--to", "badger:" + t.TempDir()},
		{"archive", "check", "--archive", strings.Replace(url, "postgres:", "mysql:", 1)},
	} {
		out, errs, code := harness.RunWith(t, nil, args...)
		if strings.Contains(out+errs, "geheim") || !strings.Contains(out+errs, "xxxxx") && code != 2 {
			t.Errorf("%v prints the password: %s%s", args, out, errs)
		}
	}
}
