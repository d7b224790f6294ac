package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// filesMax is how many program files, and how many test files, a folder may have.
const filesMax = 25

// crowded are the folders with more files, and why.
var crowded = map[string]string{
	"api":                         "is being cut",
	"api/wire":                    "is being cut",
	"spool/archive":               "is being cut",
	"spool/archive/query":         "is being cut",
	"spool/database/badgerdb":     "is being cut",
	"spool/database/databasetest": "is being cut",
	"spool/database/postgres":     "is being cut",
}

// floors are the folders at the top, each above all that it may import.
var floors = []string{"cmd", "proxy", "registry", "spool", "api", "metrics"}

// arrow is an import of one of our packages by another.
type arrow struct{ from, to string }

// arrows returns the imports that program files have, each once.
func arrows(all []parsedFile) map[arrow]bool {
	found := map[arrow]bool{}
	for _, s := range all {
		for _, spec := range s.file.Imports {
			to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "promptspool/")
			if ours && !s.test {
				found[arrow{s.dir, to}] = true
			}
		}
	}

	return found
}

// crowdedFolders returns the folders with too many files.
func crowdedFolders(all []parsedFile, excused map[string]string) (faults []string) {
	type kind struct {
		dir  string
		test bool
	}
	files := map[kind]int{}
	for _, s := range all {
		files[kind{s.dir, s.test}]++
	}

	for k, n := range files {
		what := "program"
		if k.test {
			what = "test"
		}
		if _, ok := excused[k.dir]; n > filesMax && !ok {
			faults = append(faults, fmt.Sprintf("%s has %d %s files, more than %d", k.dir, n, what, filesMax))
		}
	}
	for dir := range excused {
		if max(files[kind{dir, false}], files[kind{dir, true}]) <= filesMax {
			faults = append(faults, dir+" needs no reason any more")
		}
	}

	return faults
}

// unusedPermissions returns what the table allows and no program file does.
func unusedPermissions(found map[arrow]bool, table map[string]string) (faults []string) {
	for from, allowed := range table {
		for _, to := range strings.Fields(allowed) {
			if !found[arrow{from, to}] {
				faults = append(faults, from+" may import "+to+" and does not")
			}
		}
	}

	return faults
}

// arrowsUp returns the imports of a folder at the top by one below it.
func arrowsUp(found map[arrow]bool) (faults []string) {
	floor := func(dir string) int {
		top, _, _ := strings.Cut(dir, "/")
		return slices.Index(floors, top)
	}
	for a := range found {
		if floor(a.from) > floor(a.to) {
			faults = append(faults, a.from+" imports "+a.to+", which is above it")
		}
	}

	return faults
}

func TestTheHouseIsInOrder(t *testing.T) {
	all := sources(t)
	found := arrows(all)
	faults := slices.Concat(crowdedFolders(all, crowded), unusedPermissions(found, imports), arrowsUp(found))
	slices.Sort(faults)
	for _, fault := range faults {
		t.Error(fault)
	}
}

func TestAHouseInDisorderIsNoticed(t *testing.T) {
	var all []parsedFile
	for n := range filesMax + 1 {
		all = append(all, parsedFile{path: path.Join("api", fmt.Sprint(n)), dir: "api"})
	}
	if faults := crowdedFolders(all, map[string]string{"proxy": "no reason"}); len(faults) != 2 {
		t.Errorf("crowded folders: %q", faults)
	}

	found := map[arrow]bool{{"api", "spool"}: true, {"spool", "api"}: true, {"api", "api/wire"}: true}
	if faults := arrowsUp(found); len(faults) != 1 {
		t.Errorf("arrows up: %q", faults)
	}
	if faults := unusedPermissions(found, map[string]string{"api": "spool metrics"}); len(faults) != 1 {
		t.Errorf("permissions: %q", faults)
	}
	if len(arrows(sources(t))) < len(imports) {
		t.Error("few imports are seen; the test does not look at the project")
	}
}
