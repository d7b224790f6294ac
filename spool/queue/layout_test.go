package queue_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/spool/queue"
)

// refused fails the test unless opening the spool in dir fails with a message that contains
// want.
func refused(t *testing.T, dir, want string) {
	t.Helper()
	s, err := tryOpen(dir)
	if err == nil {
		closeSpool(t, s)
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("open: %v; want an error with %q", err, want)
	}
}

func TestAFolderWithANewerFormatIsRefused(t *testing.T) {
	dir := closed(t)
	for text, want := range map[string]string{
		"promptspool spool format 2\n":  "spool drain",
		"promptspool spool format 0\n":  "does not say a format",
		"promptspool spool format -1\n": "does not say a format",
		"what?":                         "does not say a format",
		"":                              "has no FORMAT file",
	} {
		format := filepath.Join(dir, "FORMAT")
		err := os.WriteFile(format, []byte(text), 0o600)
		if text == "" {
			err = os.Remove(format)
		}
		if err != nil {
			t.Fatal(err)
		}
		refused(t, dir, want)
	}
	if len(generationFolders(t, dir)) == 0 {
		t.Error("the refusal deleted the events")
	}
}

// The advice to free space is for a full disk only.
func TestAGenerationThatCannotBeMadeIsNotBlamedOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := os.WriteFile(filepath.Join(dir, ".build-next"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := s.Append(7, []byte("event"))
	if err == nil || strings.Contains(err.Error(), "free space") ||
		!strings.Contains(err.Error(), "file exists") {
		t.Errorf("append: %v", err)
	}
}

func TestNobodyElseMayReadTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")

	check := func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	}

	for _, size := range []int64{100_000, 500} { // one generation; many, most of them sealed
		s := open(t, dir, generationBytes(size))
		appendAll(t, s, 7, numbered(10)...)
		if err := s.Bury(letter("why", queue.Entry{Seq: 1, Data: []byte("x")})); err != nil {
			t.Fatal(err)
		}
		// With small generations Badger is writing a table now, in a folder closed to
		// others.
		if size > 500 {
			if err := filepath.WalkDir(dir, check); err != nil {
				t.Fatal(err)
			}
		}

		closeSpool(t, s)
		if err := filepath.WalkDir(dir, check); err != nil {
			t.Fatal(err)
		}
	}
}
