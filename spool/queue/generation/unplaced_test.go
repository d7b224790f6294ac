package generation_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"promptspool/spool/queue/generation"
)

// The mark is what counts only where nothing was committed: a power failure may bring it back.
func TestAnUnfinishedGenerationIsNone(t *testing.T) {
	w, dir := create(t, 1)
	commit(t, w, 1, 2)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	unfinished := filepath.Join(filepath.Dir(dir), generation.Name(3, 0))
	if err := os.Mkdir(unfinished, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{dir, unfinished} {
		if err := os.WriteFile(filepath.Join(folder, "UNPLACED"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	names, _, err := generation.In(filepath.Dir(dir))
	if err != nil || !slices.Equal(names, []string{filepath.Base(dir)}) {
		t.Errorf("generations %v: %v", names, err)
	}
	if generation.IsUnplaced(dir) || !generation.IsUnplaced(unfinished) {
		t.Error("the mark counts where events are, or does not count where there are none")
	}
}
