//go:build linux

package e2e

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

	"promptspool/metrics/parts"
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

func TestTheInstallScriptInstallsOnlyWhatTheChecksumsPromise(t *testing.T) {
	parts.Need(t, "root", "mount", "unshare", "curl")
	t.Parallel()
	name := "promptspool_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	good := archiveOf(t, "good")
	sum := func(content []byte, name string) string {
		return fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)
	}
	others := sum(nil, "promptspool_1.2.3_plan9_mips.tar.gz") + sum(nil, "promptspool_1.2.3_linux_amd64.deb")

	for _, c := range []struct {
		name, checksums string
		archive         []byte
		installs        bool
		says            string
	}{
		{"good", others + sum(good, name), good, true, "promptspool: good\n"},
		{"tampered", others + sum(good, name), archiveOf(t, "evil"), false, name + " is not what"},
		{"cut", sum(good, name), good[:len(good)/2], false, name + " is not what checksums.txt promises"},
		{"of other systems", others, good, false, "has no archive for " + runtime.GOOS},
		{"ambiguous", sum(good, name) + sum(good, "promptspool_1.2.4"+name[17:]), good, false, "several archives"},
		{"without checksums", "", good, false, "checksums.txt cannot be downloaded"},
		{"without the archive", sum(good, name), nil, false, name + " cannot be downloaded"},
	} {
		files := map[string][]byte{"/1.2.3/checksums.txt": []byte(c.checksums), "/1.2.3/" + name: c.archive}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(files[r.URL.Path]) == 0 {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(files[r.URL.Path])
		}))

		// The script cannot write /usr/local/bin, so it has to take the home folder.
		home := t.TempDir()
		installed := filepath.Join(home, ".local/bin/promptspool")
		cmd := exec.Command("unshare", "--mount", "sh", "-c",
			`mount -t tmpfs -o ro tmpfs /usr/local/bin && exec sh "$@"`,
			"sh", top+"/cmd/promptspool/deploy/release/install.sh", server.URL+"/1.2.3/")
		cmd.Env = append(os.Environ(), "HOME="+home)
		out, err := cmd.CombinedOutput()
		server.Close()

		_, missing := os.Stat(installed)
		isRight := (err == nil) == c.installs && (missing == nil) == c.installs
		if !isRight || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v, %v\n%s", c.name, err, missing, out)
		}
	}
}
