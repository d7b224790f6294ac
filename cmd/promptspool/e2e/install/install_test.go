//go:build linux

package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// archiveOf returns an archive of a release, with a program that says hello.
func archiveOf(t *testing.T, hello string) []byte {
	t.Helper()
	program := []byte("#!/bin/sh\necho " + hello + "\n")
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	packed := tar.NewWriter(zipped)
	header := tar.Header{Name: "promptspool", Mode: 0o755, Size: int64(len(program))}
	if err := packed.WriteHeader(&header); err != nil {
		t.Fatal(err)
	}
	if _, err := packed.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}

	return b.Bytes()
}

// installRelease runs the install script against a release of these files, and returns what it
// printed and whether the program is installed.
func installRelease(t *testing.T, files map[string][]byte, variables ...string) (out string, installed bool) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content := files[strings.TrimPrefix(r.URL.Path, "/1.2.3/")]
		if len(content) == 0 {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	defer server.Close()

	// The script cannot write /usr/local/bin, so it has to take the home folder.
	home := t.TempDir()
	cmd := exec.Command("unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o ro tmpfs /usr/local/bin && exec sh "$@"`,
		"sh", harness.Top+"/cmd/promptspool/deploy/release/install.sh", server.URL+"/1.2.3/")
	cmd.Env = append(append(os.Environ(), "HOME="+home), variables...)
	printed, err := cmd.CombinedOutput()
	_, missing := os.Stat(filepath.Join(home, ".local/bin/promptspool"))
	if (err == nil) != (missing == nil) {
		t.Errorf("the script ends with %v, and of the program: %v\n%s", err, missing, printed)
	}

	return string(printed), missing == nil
}

// archiveName is what the archive for this machine is called.
const archiveName = "promptspool_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"

// sumLine returns the line of checksums.txt for a file.
func sumLine(content []byte, name string) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)
}

func TestTheInstallScriptInstallsOnlyWhatTheChecksumsPromise(t *testing.T) {
	partstest.Need(t, "root", "mount", "unshare", "curl")
	t.Parallel()
	good, name := archiveOf(t, "good"), archiveName
	others := sumLine(nil, "promptspool_1.2.3_plan9_mips.tar.gz") + sumLine(nil, "promptspool_1.2.3_linux_amd64.deb")

	for _, c := range []struct {
		name, checksums string
		archive         []byte
		installs        bool
		says            string
	}{
		{"good", others + sumLine(good, name), good, true, "promptspool: good\n"},
		{"tampered", others + sumLine(good, name), archiveOf(t, "evil"), false, name + " is not what"},
		{"cut", sumLine(good, name), good[:len(good)/2], false, name + " is not what checksums.txt promises"},
		{"of other systems", others, good, false, "has no archive for " + runtime.GOOS},
		{"ambiguous", sumLine(good, name) + sumLine(good, "promptspool_1.2.4"+name[17:]), good, false,
			"several archives"},
		{"without checksums", "", good, false, "checksums.txt cannot be downloaded"},
		{"without the archive", sumLine(good, name), nil, false, name + " cannot be downloaded"},
	} {
		files := map[string][]byte{"checksums.txt": []byte(c.checksums), name: c.archive}
		out, installed := installRelease(t, files)
		if installed != c.installs || !strings.Contains(out, c.says) {
			t.Errorf("%s: installed is %v\n%s", c.name, installed, out)
		}
	}
}

// signingCommands are the commands with which the page Install makes a key and signs.
func signingCommands(t *testing.T) string {
	t.Helper()
	commands := ""
	for _, e := range harness.ExamplesOf("install") {
		for line := range strings.Lines(e.Code) {
			if strings.HasPrefix(line, "openssl ") && !strings.Contains(line, " -verify ") {
				commands += line
			}
		}
	}
	if strings.Count(commands, "\n") != 3 {
		t.Fatalf("the page signs with %q", commands)
	}

	return commands
}

func TestTheInstallScriptVerifiesTheSignatureOfAKeyThatIsGiven(t *testing.T) {
	partstest.Need(t, "root", "mount", "unshare", "curl", "openssl")
	t.Parallel()
	good := archiveOf(t, "good")
	sums := []byte(sumLine(good, archiveName))

	// Two people have a key each; the release is signed by the first.
	sign := func() (key string, signature []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "checksums.txt"), sums, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-ec", signingCommands(t))
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("signing: %v\n%s", err, out)
		}
		signature, err := os.ReadFile(filepath.Join(dir, "checksums.txt.sig"))
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "release-public.pem"), signature
	}
	key, signature := sign()
	strangersKey, strangersSignature := sign()

	evil := archiveOf(t, "evil")
	evilSums := []byte(sumLine(evil, archiveName))
	for _, c := range []struct {
		name                     string
		key                      string
		sums, signature, archive []byte
		says                     string // "" if it installs
	}{
		{"signed", key, sums, signature, good, ""},
		{"signed, and nobody asks", "", sums, signature, good, ""},
		{"forged whole", key, evilSums, signature, evil, "checksums.txt is not signed with the key in " + key},
		{"forged and signed by a stranger", key, sums, strangersSignature, good, "is not signed"},
		{"with another key", strangersKey, sums, signature, good, "is not signed"},
		{"a tampered archive", key, sums, signature, evil, archiveName + " is not what checksums.txt promises"},
		{"no signature", key, sums, nil, good, "checksums.txt.sig cannot be downloaded"},
		{"a signature of nothing", key, sums, []byte("x"), good, "is not signed"},
		{"no such key", "/no/such.pem", sums, signature, good, "key in PROMPTSPOOL_PUBLIC_KEY cannot be read"},
	} {
		files := map[string][]byte{"checksums.txt": c.sums, "checksums.txt.sig": c.signature, archiveName: c.archive}
		var variables []string
		if c.key != "" {
			variables = []string{"PROMPTSPOOL_PUBLIC_KEY=" + c.key}
		}
		out, installed := installRelease(t, files, variables...)
		if installed != (c.says == "") || !strings.Contains(out, c.says) {
			t.Errorf("%s: installed is %v\n%s", c.name, installed, out)
		}
	}

	// An empty variable is a mistake, and no reason to trust anybody.
	files := map[string][]byte{"checksums.txt": sums, "checksums.txt.sig": signature, archiveName: good}
	if out, installed := installRelease(t, files, "PROMPTSPOOL_PUBLIC_KEY="); installed {
		t.Errorf("an empty name of a key: installed\n%s", out)
	}
}
