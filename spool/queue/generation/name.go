package generation

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Name returns the name of a generation's folder.
//
// Edition 0 was written by appends; a higher one was rebuilt from the raw files of the
// edition before it.
func Name(first uint64, edition int) string {
	if edition == 0 {
		return fmt.Sprintf("gen-%016x", first)
	}
	return fmt.Sprintf("gen-%016x.%d", first, edition)
}

// ParseName is the inverse of Name. It reports false for anything that Name does not
// return.
func ParseName(name string) (first uint64, edition int, ok bool) {
	base, suffix, rebuilt := strings.Cut(name, ".")
	if n, err := fmt.Sscanf(base, "gen-%016x", &first); n != 1 || err != nil || len(base) != len("gen-")+16 {
		return 0, 0, false
	}

	if rebuilt {
		if n, err := fmt.Sscanf(suffix, "%d", &edition); n != 1 || err != nil || edition < 1 {
			return 0, 0, false
		}
	}

	// Sscanf also accepts other spellings of the same numbers.
	return first, edition, Name(first, edition) == name
}

// In lists the generations of a folder in order, each by its newest edition. It returns
// older editions, which a crash in the middle of a rebuild leaves, as superseded.
func In(dir string) (names, superseded []string, err error) {
	paths, err := filesBySuffix(dir, "")
	if err != nil {
		return nil, nil, err
	}

	for _, path := range paths {
		name := filepath.Base(path)
		first, edition, ok := ParseName(name)
		if !ok || IsUnplaced(path) {
			continue
		}
		n := len(names)
		if n == 0 {
			names = append(names, name)
			continue
		}

		// Names sort as text, so edition 10 comes before edition 9.
		switch before, editionBefore, _ := ParseName(names[n-1]); {
		case before != first:
			names = append(names, name)
		case editionBefore > edition:
			superseded = append(superseded, name)
		default:
			superseded = append(superseded, names[n-1])
			names[n-1] = name
		}
	}
	return names, superseded, nil
}
