package registry_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"promptspool/api/wire"
)

func TestAFileThatCannotBeReadIsSetAside(t *testing.T) {
	spoil := map[string]func(path string, content []byte) error{
		"a byte flipped": func(path string, content []byte) error {
			content[len(content)/2] ^= 1
			return os.WriteFile(path, content, 0o600)
		},
		"cut short": func(path string, content []byte) error {
			return os.WriteFile(path, content[:len(content)/2], 0o600)
		},
		"empty": func(path string, content []byte) error { return os.WriteFile(path, nil, 0o600) },
		"other name": func(path string, content []byte) error {
			return os.Rename(path, filepath.Join(filepath.Dir(path), "00.template"))
		},
	}
	for name, spoil := range spoil {
		scene(t, name, func(t *testing.T, s *server, dir string) {
			c := startGreeting(t, dir, s)
			c.stop()
			file := only(t, dir, "*.template")

			content, err := os.ReadFile(file)
			if err == nil {
				err = spoil(file, content)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "1.tmp"), []byte("half"), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}

			s.goAway()
			c = start(t, dir, s)
			equal(t, "fetched", c.fetched(t, "greet", latest), "unavailable")
			only(t, dir, "*") // the .bad one
			only(t, dir, "*.bad")
			s.comeBack()
			equal(t, "fetched anew", c.fetched(t, "greet", latest), "one miss")
			only(t, dir, "*.template")
		})
	}
}

func TestWhatWasServedIsOnDisk(t *testing.T) {
	scene(t, "releases and a removal", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "release 0 "))
		c := start(t, dir, s)
		c.fetched(t, "greet", latest)
		number := func(text string) (n int) {
			_, after, _ := strings.Cut(text, "release ")
			if _, err := fmt.Sscan(after, &n); err != nil {
				t.Errorf("%s names no release: %v", text, err)
			}
			return n
		}

		for release := 1; release <= 30; release++ {
			s.publish(t, says("greet", fmt.Sprint("release ", release, " ")))
			for served := 0; served < release && !t.Failed(); {
				served = number(c.fetched(t, "greet", latest))
				content, err := os.ReadFile(only(t, dir, "*.template"))
				if saved := number(string(content)); saved < served || err != nil {
					t.Errorf("release %d was served, but the file has %d, error %v", served, saved, err)
				}
			}
		}

		s.set(func() { s.err = wire.Errorf(wire.CodeNotFound, "deleted") })
		s.publish(t, says("greet", "again"))
		for c.fetched(t, "greet", latest) != "not_found" {
		}
		if files, err := filepath.Glob(filepath.Join(dir, "*")); len(files) > 0 {
			t.Errorf("it was told to be deleted, but %v is there, error %v", files, err)
		}
	})
}

func TestFilesAndFolderAreForTheirOwnerOnly(t *testing.T) {
	scene(t, "modes", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("a/../../b", "one"))
		start(t, dir, s).fetched(t, "a/../../b", latest)
		for path, want := range map[string]os.FileMode{dir: 0o700, only(t, dir, "*"): 0o600} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "mode of "+path, info.Mode().Perm(), want)
		}
	})
}

// only returns the one file that matches.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v, error %v; want one file", pattern, files, err)
	}
	return files[0]
}

func TestTheCacheIsBounded(t *testing.T) {
	fill := func(t *testing.T, s *server, dir string, count, bytes int) {
		c := start(t, dir, s)
		synctest.Wait()

		c.SetBounds(count, bytes)
		for i := range 8 {
			s.publish(t, says(fmt.Sprint("t", i), strings.Repeat("x", 10<<10)))
			c.fetched(t, fmt.Sprint("t", i), latest)
			c.fetched(t, "t0", latest) // stays, because it is used
		}
		synctest.Wait() // a copy fetched in the background may still be on its way to the disk
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != 5 {
			t.Errorf("%d files, error %v; want the 5 that fit", len(files), err)
		}
		c.stop()

		s.goAway()
		c = start(t, dir, s)
		var there []int
		for i := range 8 {
			if c.fetched(t, fmt.Sprint("t", i), latest) != "unavailable" {
				there = append(there, i)
			}
		}
		equal(t, "those that stayed", there, []int{0, 4, 5, 6, 7})
	}

	scene(t, "by number", func(t *testing.T, s *server, dir string) { fill(t, s, dir, 5, 1<<20) })
	scene(t, "by bytes", func(t *testing.T, s *server, dir string) { fill(t, s, dir, 1000, 60<<10) })

	scene(t, "one that is too large for the cache is served, not kept", func(t *testing.T, s *server, dir string) {
		c := start(t, dir, s)
		c.SetBounds(5, 10)
		s.publish(t, says("greet", "one"))
		equal(t, "first", c.fetched(t, "greet", latest), "one miss")
		equal(t, "second", c.fetched(t, "greet", latest), "one miss")
		if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 0 {
			t.Errorf("files %v, want none", files)
		}
	})
}

func TestTemplatesAreOpenedAndClosedAsTheyAreUsed(t *testing.T) {
	scene(t, "opened", func(t *testing.T, s *server, dir string) {
		c := start(t, dir, s)
		name := func(i int) string { return fmt.Sprint("t", i) }
		var want [8]wire.RenderedTemplate
		fetch := wire.TemplateFetch{
			Provider: "openai", Variables: map[string]json.RawMessage{"a": json.RawMessage(`"&"`)},
		}
		for i := range want {
			s.publish(t, wire.Publish{
				PublishedName: wire.PublishedName{
					Name: name(i),
					Tags: []string{name(i)},
				},
				PublishedVersion: wire.PublishedVersion{
					CommitMessage: "m",
					Metadata:      json.RawMessage(fmt.Sprintf(`{"n":%d.50}`, i)),
					Blueprint: json.RawMessage(
						fmt.Sprintf(`{"messages":[{"role":"user","content":"<{a}> \u00fc %d"}]}`, i)),
				},
			})
			var err error
			if want[i], err = s.registry().Fetch(t.Context(), ann, name(i), fetch); err != nil {
				t.Fatal(err)
			}
			// It has heard of the change by then, so what it gets stays current.
			synctest.Wait()
			if _, err := c.Raw(t.Context(), ann, name(i), latest); err != nil { // as a preload does
				t.Fatal(err)
			}
		}
		check := func(i int) {
			t.Helper()
			got, err := c.Fetch(t.Context(), ann, name(i), fetch)
			if err != nil {
				t.Fatal(err)
			}
			want[i].Cache, want[i].Age = "hit", got.Age
			equal(t, name(i), got, want[i])
			raw, err := c.Raw(t.Context(), ann, name(i), latest)
			if err != nil || string(raw.Blueprint) != string(want[i].Blueprint) {
				t.Errorf("%s is %s unrendered, %v", name(i), raw.Blueprint, err)
			}
		}
		check(0)

		one, bytes := c.Opened()
		if one != 1 {
			t.Fatalf("%d are open, but only one was fetched since they were stored", one)
		}

		c.SetOpened(3*bytes + bytes/2)
		for round := range 3 {
			for i := range want {
				check(i)
				check(round) // is used all the time, so it stays open
			}
			if open, all := c.Opened(); open != 3 || all > 3*bytes+bytes/2 {
				t.Errorf("%d are open with %d bytes, want 3", open, all)
			}
		}

		c.SetOpened(bytes / 2)
		for i := range want {
			check(i) // none fits any more, but each is served
		}
	})
}
