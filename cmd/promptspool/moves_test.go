package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Windows neither renames nor removes what is open or mapped. Package disk refuses it on Linux as
// well, in a build with the tag portable, so whatever stores data has to ask that package.
func TestStoresRenameAndRemoveThroughPackageDisk(t *testing.T) {
	direct := regexp.MustCompile(`\bos\.(Rename|Remove|RemoveAll)\(`)
	checked := 0

	for _, f := range sources(t) {
		top, _, _ := strings.Cut(f.dir, "/")
		stores := top == "spool" || top == "proxy" || f.dir == "registry"
		exempt := f.dir == "spool/disk" || strings.HasSuffix(f.dir, "test") || strings.HasSuffix(f.path, "_linux.go")
		if f.test || !stores || exempt {
			continue
		}

		text, err := os.ReadFile(filepath.Join("../..", f.path))
		if err != nil {
			t.Fatal(err)
		}
		checked++
		if call := direct.Find(text); call != nil {
			t.Errorf("%s calls %s), and not that of package disk", f.path, call)
		}
	}

	if checked < 50 {
		t.Errorf("only %d files were checked", checked)
	}
}
