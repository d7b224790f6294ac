package proxy_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"promptspool/spool/queue"
)

// onlyKeyFile is the path of the one file in the folder of the keys.
func (s *sidecar) onlyKeyFile() string {
	s.t.Helper()
	names := s.keyFiles()
	if len(names) != 1 {
		s.t.Fatalf("the files of keys are %v; want one", names)
	}
	return filepath.Join(s.keyDir(), names[0])
}

func TestKeysAreForTheOwnersEyes(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, _ *server) {
		s.mustWrite(annsKey, "e1")
		for path, want := range map[string]fs.FileMode{s.keyDir(): fs.ModeDir | 0o700, s.onlyKeyFile(): 0o600} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != want {
				t.Errorf("the mode of %s is %v; want %v", path, info.Mode(), want)
			}
		}

		s.stop()
		defer s.start()
		err := filepath.WalkDir(filepath.Join(s.dir, "spool"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte(annsKey)) {
				t.Errorf("the key is in %s", path)
			}
			return err
		})

		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestADamagedFileIsSetAsideAndHoldsOnlyItsOwnEvents(t *testing.T) {
	for name, damage := range map[string]func(path string, text []byte) error{
		"empty":     func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"cut short": func(path string, text []byte) error { return os.WriteFile(path, text[:len(text)-5], 0o600) },
		"a flipped bit": func(path string, text []byte) error {
			text[bytes.Index(text, []byte(annsKey))] ^= 1
			return os.WriteFile(path, text, 0o600)
		},
		"under another name": func(path string, _ []byte) error {
			return os.Rename(path, filepath.Join(filepath.Dir(path), "7.json"))
		},
	} {
		scene(t, name, func(t *testing.T, s *sidecar, srv *server) {
			s.mustWrite(annsKey, "a1", "a2")
			path := s.onlyKeyFile()
			s.mustWrite(bobsKey, "b1")

			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}

			s.stop()
			if err := damage(path, text); err != nil {
				t.Fatal(err)
			}
			s.start()
			s.mustWrite(annsKey, "a3") // the key is good as ever

			s.drain()
			if got, _ := srv.got(); !slices.Equal(got, []string{"a3", "b1"}) {
				t.Errorf("the server has %v; want a3 and b1", got)
			}
			held, reasons := s.lane(queue.LaneHeld)
			if !slices.Equal(held, []string{"a1", "a2"}) || !strings.Contains(reasons[0], "lost or damaged") {
				t.Errorf("held are %v for %q; want a1 and a2", held, reasons)
			}

			files := strings.Join(s.keyFiles(), " ")
			if !strings.Contains(files, ".bad") || !strings.Contains(s.log.String(), ".bad") {
				t.Errorf("the files are %v; want a .bad, and a line in the log that names it", s.keyFiles())
			}
		})
	}
}

func TestWhatIsLeftOfKeysThatNobodyNeedsIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, _ *server) {
		s.mustWrite(annsKey, "a1")
		path := s.onlyKeyFile()
		bad := strings.TrimSuffix(filepath.Base(path), ".json") + ".bad"
		for _, name := range []string{"7.tmp", "7.bad", "notes.txt", bad} {
			if err := os.WriteFile(filepath.Join(s.keyDir(), name), []byte(annsKey), 0o600); err != nil {
				t.Fatal(err)
			}
		}

		s.restart()
		want := []string{"notes.txt", filepath.Base(path), bad}
		got := s.keyFiles()
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the files are %v; want %v: what an event needs, and what is not ours", got, want)
		}
	})
}
