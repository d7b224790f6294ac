package datafolder

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFolderOfUpStandsForThatOfEachRole(t *testing.T) {
	made := func(folders ...string) string {
		dir := t.TempDir()
		for _, f := range folders {
			if err := os.MkdirAll(filepath.Join(dir, f), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}

	for _, tt := range []struct {
		name    string
		dir     string
		role    string
		want    string // below dir
		refused bool
	}{
		{"up's", made("server/archive", "sidecar/spool"), "server", "server", false},
		{"up's", made("server/archive", "sidecar/spool"), "sidecar", "sidecar", false},
		{"up's without a sidecar", made("server"), "sidecar", "", true},
		{"a server's", made("archive"), "server", ".", false},
		{"a sidecar's", made("spool"), "sidecar", ".", false},
		{"a server's with a folder of that name", made("archive", "sidecar"), "server", ".", false},
		{"an empty one", made(), "server", ".", false},
		{"one that does not exist", filepath.Join(made(), "gone"), "server", ".", false},
	} {
		got, err := OfRole(tt.dir, tt.role)
		if tt.refused {
			if err == nil || !strings.Contains(err.Error(), "give the data folder of a "+tt.role) {
				t.Errorf("%s, as %s: %q, %v", tt.name, tt.role, got, err)
			}
			continue
		}

		if err != nil || got != filepath.Join(tt.dir, tt.want) {
			t.Errorf("%s, as %s: %q, %v", tt.name, tt.role, got, err)
		}
	}
}

func TestAFolderOfTheOtherRoleIsRejected(t *testing.T) {
	for _, tt := range []struct {
		holds, role, other string // other is "" if it opens
	}{
		{"archive", "server", ""},
		{"spool", "sidecar", ""},
		{"keys", "server", ""},
		{"spool", "server", "sidecar"},
		{"archive", "sidecar", "server"},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, tt.holds), 0o700); err != nil {
			t.Fatal(err)
		}

		lock, err := Open(dir, tt.role, slog.New(slog.DiscardHandler))
		if tt.other == "" {
			if err != nil {
				t.Errorf("%s with %s: %v", tt.role, tt.holds, err)
			}
			lock.Close()
		} else if err == nil || !strings.Contains(err.Error(), "data folder of a "+tt.other) {
			t.Errorf("%s with %s: %v", tt.role, tt.holds, err)
		}
	}
}

func TestAFolderOfAnotherUserIsNamed(t *testing.T) {
	err := inFolder("/data", &os.PathError{Op: "open", Path: "/data/crash", Err: os.ErrPermission})
	for _, part := range []string{"--data /data: open /data/crash", "another user's"} {
		if !strings.Contains(err.Error(), part) {
			t.Error(err)
		}
	}
}
