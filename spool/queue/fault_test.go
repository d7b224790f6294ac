package queue_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestAnyOneFaultIsCounted flips a bit of any file of the spool, truncates it or removes
// it. The spool must open, take new events, and count what it lost.
func TestAnyOneFaultIsCounted(t *testing.T) {
	limitChecks(t, 20)
	folders := []string{crashed(t), closed(t), withLanes(t)}

	rapid.Check(t, func(rt *rapid.T) {
		folder := rapid.SampledFrom(folders).Draw(rt, "folder")
		events := 10
		if folder == folders[2] {
			events = 7 // in the lanes
		}

		dir := copyDir(t, folder)
		damageAny(rt, dir)
		s, err := tryOpen(dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		if err := s.Append(t.Context(), 7, []byte("new")); err != nil {
			rt.Fatal(err)
		}

		read := len(readAll(t, s)) - 1
		if st := s.Status(); read+st.Held+st.Dead+int(st.Gaps+st.Uncertain) != events || st.Uncertain > 1 {
			rt.Fatalf("of %d events %d are left, %d are counted as lost and %d as uncertain",
				events, read+st.Held+st.Dead, st.Gaps, st.Uncertain)
		}
	})
}

// damageAny damages one file. It damages a large file near the beginning, where the data
// is.
func damageAny(t *rapid.T, dir string) {
	files := []string{filepath.Join(dir, "cursor"), filepath.Join(dir, "lanes.count")}
	for _, folder := range []string{"gen-*", "lanes"} {
		more, err := filepath.Glob(filepath.Join(dir, folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}

	file := rapid.SampledFrom(files).Draw(t, "file")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	offset := rapid.Int64Range(0, max(0, min(info.Size(), 2000)-1)).Draw(t, "offset")

	switch rapid.SampledFrom([]string{"flip", "cut", "remove"}).Draw(t, "fault") {
	case "flip":
		err = flipBit(file, offset, rapid.IntRange(0, 7).Draw(t, "bit"))
	case "cut":
		err = os.Truncate(file, offset)
	case "remove":
		err = os.Remove(file)
	}

	if err != nil && !strings.Contains(err.Error(), "EOF") { // an empty file has no bit to flip
		t.Fatal(err)
	}
}

// flipBit inverts one bit of a file.
func flipBit(path string, offset int64, bit int) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	b := make([]byte, 1)
	if _, err := file.ReadAt(b, offset); err != nil {
		return err
	}
	b[0] ^= 1 << bit
	_, err = file.WriteAt(b, offset)

	return err
}
