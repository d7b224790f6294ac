package generation

import (
	"log/slog"
	"os"
	"path/filepath"
	"promptspool/spool/rawlog"
	"testing"
)

// Windows syncs a mapping by its address, which only Badger's fields tell.
func TestTheMappingsOfADatabaseAreThoseOfItsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	log := rawlog.Log{Logger: slog.New(slog.DiscardHandler), Fail: func(error) {}}
	w, err := Create(dir, 1, 1<<20, log)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()

	maps := mappings(w.db)
	for i, suffix := range []string{".vlog", ".mem"} {
		paths, err := filesBySuffix(w.dir, suffix)
		if err != nil || len(paths) != 1 {
			t.Fatal(paths, err)
		}

		// A byte that is written through the mapping is in the file.
		maps[i][1000] = 'x'
		content, err := os.ReadFile(paths[0])
		if err != nil || len(content) != len(maps[i]) || content[1000] != 'x' {
			t.Errorf("%s: %d bytes of a file of %d: %v", paths[0], len(maps[i]), len(content), err)
		}
		maps[i][1000] = 0
	}
}
