//go:build !race

package queue_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"promptspool/spool/queue"
)

func TestAnEventOf32MiBGoesThroughWhole(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	large := bytes.Repeat([]byte("0123456789abcde\n"), 2<<20)
	large = append(large, "the envelope"...)
	appendAll(t, s, 7, "before", string(large), "after")
	for _, s := range []*queue.Queue{s, open(t, copyDir(t, dir))} {
		entries := readAll(t, s)
		if len(entries) != 3 || !bytes.Equal(entries[1].Data, large) {
			t.Fatalf("read %d events", len(entries))
		}
		if st := s.Status(); st.Gaps != 0 || st.Bytes != int64(len(large)+len("beforeafter")) {
			t.Fatalf("status %+v", st)
		}

		// The lanes take it, too.
		if err := s.Bury(letter("too large", entries[1])); err != nil {
			t.Fatal(err)
		}
		if dead := lane(t, s, queue.LaneDead); len(dead) != 1 || !bytes.Equal(dead[0].Data, large) {
			t.Errorf("%d dead letters come back, or other bytes", len(dead))
		}
	}
}

func TestAFullGenerationOfTinyEventsIsOneTable(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, generationBytes(16<<20))
	tiny := slices.Repeat([][]byte{[]byte("x")}, 1000)
	for range 20 {
		if err := s.Append(7, tiny...); err != nil {
			t.Fatal(err)
		}
	}

	closeSpool(t, s)
	folders := generationFolders(t, dir)
	if len(folders) != 2 {
		t.Fatalf("20,000 events take %d generations, want 2", len(folders))
	}

	for _, folder := range folders {
		if tables, _ := filepath.Glob(filepath.Join(folder, "*.sst")); len(tables) != 1 {
			t.Errorf("%s has %d tables, want 1", folder, len(tables))
		}
	}
}
