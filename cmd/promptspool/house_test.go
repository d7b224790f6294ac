package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imports is which of our own packages each package may import. A package that is not
// here does not exist.
var imports = map[string]string{
	"metrics":             "",
	"metrics/cputimetest": "",
	"metrics/partstest":   "",
	"api": "api/access api/admission api/edge api/filterline api/mcp api/otlp api/tracetree api/wire " +
		"api/wire/calendar api/wire/jsonscan api/wire/secrets api/words metrics",
	"api/filterline":      "api/wire api/wire/calendar api/words",
	"api/words":           "",
	"api/wire":            "api/wire/jsonscan",
	"api/wire/jsonscan":   "",
	"api/wire/secrets":    "api/wire api/wire/jsonscan",
	"api/wire/yamlreader": "",
	"api/wire/calendar":   "",
	"api/wire/packed":     "",
	"api/significance":    "api/wire",
	"api/experiment":      "api/significance api/wire",
	"api/admission":       "api/edge api/wire api/wire/jsonscan metrics",
	"api/otlp":            "api/wire api/wire/jsonscan api/wire/secrets",
	"api/edge":            "api/wire metrics",
	"api/mcp":             "api/wire api/wire/jsonscan",
	"api/ops":             "api/edge api/wire metrics",
	"api/access":          "api/wire",
	"api/auth":            "api/wire",
	"api/auth/oidc":       "api/wire",
	"api/webhook":         "api/wire metrics",
	"api/client":          "api/admission api/wire api/wire/jsonscan",
	"api/tracetree":       "api/wire",
	"api/openapitest":     "metrics/partstest",
	"api/dashboard": "api/dashboard/alerts " +
		"api/dashboard/conversation api/dashboard/docs api/dashboard/frame " +
		"api/dashboard/overview api/dashboard/people api/dashboard/requests api/dashboard/review " +
		"api/dashboard/scores " +
		"api/dashboard/sessions api/dashboard/targets api/dashboard/templates api/dashboard/views api/wire api/words",
	"api/dashboard/overview": "api/dashboard/address api/dashboard/chart " +
		"api/dashboard/filter api/dashboard/frame api/dashboard/number api/dashboard/table api/filterline api/wire",
	"api/dashboard/requests": "api/dashboard/address api/dashboard/conversation api/dashboard/filter " +
		"api/dashboard/frame api/dashboard/markup api/dashboard/number api/dashboard/table api/filterline " +
		"api/tracetree api/wire api/words",
	"api/dashboard/review": "api/dashboard/address api/dashboard/conversation api/dashboard/filter " +
		"api/dashboard/frame api/wire",
	"api/dashboard/sessions": "api/calls api/dashboard/address api/dashboard/conversation " +
		"api/dashboard/filter api/dashboard/frame api/dashboard/number api/dashboard/table " +
		"api/filterline api/wire",
	"api/dashboard/templates": "api/calls api/dashboard/address api/dashboard/chart " +
		"api/dashboard/conversation api/dashboard/filter api/dashboard/frame api/dashboard/markup " +
		"api/dashboard/number api/dashboard/table api/dashboard/textdiff api/experiment api/filterline api/wire " +
		"api/wire/jsonscan api/words",
	"api/dashboard/scores": "api/dashboard/address api/dashboard/filter api/dashboard/frame api/dashboard/number " +
		"api/filterline api/wire",
	"api/dashboard/views": "api/access api/dashboard/address api/dashboard/filter api/dashboard/frame " +
		"api/filterline api/wire",
	"api/dashboard/people":  "api/dashboard/address api/dashboard/frame api/dashboard/table api/wire",
	"api/dashboard/targets": "api/dashboard/frame api/wire",
	"api/dashboard/alerts":  "api/dashboard/frame api/dashboard/number api/wire",
	"api/dashboard/frame": "api/access api/dashboard/address api/dashboard/filter " +
		"api/dashboard/number api/dashboard/textdiff api/wire api/wire/calendar api/wire/jsonscan",
	"api/dashboard/filter": "api/dashboard/address api/dashboard/number api/filterline " +
		"api/wire api/wire/calendar api/words",
	"api/dashboard/conversation": "api/calls api/dashboard/markup api/words",
	"api/dashboard/address":      "",
	"api/dashboard/number":       "api/wire",
	"api/dashboard/table":        "api/dashboard/address",
	"api/dashboard/chart":        "api/dashboard/address api/wire",
	"api/dashboard/docs":         "api/wire/packed",
	"api/dashboard/markup":       "api/wire/jsonscan",
	"api/dashboard/textdiff":     "",
	"registry":                   "api/admission api/wire api/wire/jsonscan metrics registry/render spool/disk",
	"registry/render": "api/wire registry/render/fstring " +
		"registry/render/language registry/render/prompt registry/render/provider " +
		"registry/render/rawjson",
	"registry/render/rawjson":  "api/wire api/wire/jsonscan",
	"registry/render/language": "api/wire api/wire/jsonscan",
	"registry/render/fstring":  "api/wire/jsonscan registry/render/language",
	"registry/render/jinja":    "api/wire/jsonscan registry/render/language",
	"registry/render/prompt": "api/wire registry/render/fstring registry/render/jinja registry/render/language " +
		"registry/render/rawjson",
	"registry/render/provider": "api/wire registry/render/language registry/render/prompt registry/render/rawjson",
	"registry/prices":          "api/calls api/wire api/wire/packed",
	"registry/gitfiles":        "api/wire api/wire/jsonscan api/wire/yamlreader registry registry/render",
	"proxy":                    "api/wire metrics spool/crashpoint spool/disk spool/queue",
	"proxy/redact":             "api/wire api/wire/jsonscan api/wire/secrets metrics",
	"spool":                    "",
	"spool/queue": "metrics spool/crashpoint spool/disk spool/queue/frame spool/queue/generation " +
		"spool/queue/lane spool/rawlog",
	"spool/queue/generation": "spool/crashpoint spool/disk spool/queue/frame spool/rawlog",
	"spool/queue/lane":       "spool/crashpoint spool/disk spool/queue/frame spool/rawlog",
	"spool/crashpoint":       "",
	"spool/queue/frame":      "",
	"spool/disk":             "",
	"spool/rawlog":           "spool/disk",
	"spool/archive": "api/wire api/wire/jsonscan api/wire/secrets api/calls " +
		"api/calls/otel api/calls/otel/dialect api/otlp metrics spool/archive/query spool/archive/reports " +
		"spool/archive/rollup spool/archive/rowcode spool/crashpoint",
	"spool/archive/reports":   "",
	"spool/archive/rollup":    "api/wire",
	"spool/archive/textindex": "api/words",
	"spool/archive/records": "api/admission api/wire api/wire/secrets metrics " +
		"api/calls/otel/dialect spool/archive spool/archive/query spool/archive/rollup spool/archive/rowcode",
	"spool/archive/alerts": "api/dashboard/number api/filterline api/wire spool/archive/query " +
		"spool/archive/rowcode",
	"spool/archive/rowcode":   "api/wire api/calls",
	"spool/database/compress": "",
	"spool/database/repack": "api/calls/otel/dialect api/wire spool/archive spool/archive/query " +
		"spool/archive/rollup spool/archive/rowcode spool/crashpoint spool/database/compress",
	"api/calls":              "api/wire api/wire/jsonscan api/calls/otel",
	"api/calls/otel":         "api/otlp api/wire api/wire/jsonscan api/calls/otel/dialect",
	"api/calls/otel/dialect": "",
	"spool/archive/query": "api/wire api/wire/jsonscan api/wire/calendar api/words api/calls " +
		"api/significance spool/archive/rowcode spool/archive/textindex",
	"spool/database/transfer": "api/wire spool/archive spool/database/accounts spool/database/keyed",
	"spool/database/keyed":    "api/wire api/wire/jsonscan",
	"spool/database/accounts": "api/wire spool/archive spool/archive/rowcode spool/database/keyed",
	"spool/database/badgerdb": "api/wire api/wire/jsonscan api/words metrics spool/archive spool/crashpoint " +
		"spool/database/accounts " +
		"spool/database/badgerdb/blocks spool/database/badgerdb/folder spool/database/compress spool/database/keyed " +
		"spool/archive/query spool/archive/rollup " +
		"spool/archive/rowcode spool/archive/textindex spool/database/repack spool/database/transfer " +
		"spool/disk spool/rawlog",
	"spool/database/badgerdb/blocks": "api/wire api/words spool/archive/query spool/archive/rowcode",
	"spool/database/badgerdb/folder": "spool/disk spool/rawlog",
	"spool/database/postgres": "api/wire api/words metrics spool/archive spool/crashpoint " +
		"spool/database/accounts spool/database/compress " +
		"spool/database/keyed spool/database/postgres/connection spool/database/postgres/filter " +
		"spool/database/postgres/schema spool/archive/query spool/archive/rollup " +
		"spool/archive/rowcode spool/archive/textindex spool/database/repack " +
		"spool/database/transfer",
	"spool/database/postgres/connection": "api/wire",
	"spool/database/postgres/filter": "api/wire spool/archive spool/archive/query spool/archive/rowcode " +
		"spool/database/postgres/schema",
	"spool/database/postgres/schema": "api/wire spool/crashpoint spool/database/postgres/connection",
	// The suites that every store passes import what they test.
	"spool/database/databasetest": "api/otlp api/otlp/otlptest api/wire metrics metrics/cputimetest " +
		"spool/archive spool/archive/alerts spool/archive/query spool/archive/records spool/archive/rollup " +
		"spool/archive/rowcode spool/database/keyed spool/database/transfer",
	"spool/database/keyed/keyedtest": "api/wire spool/database/keyed",
	// A disk with bad blocks for tests.
	"spool/disk/disktest": "metrics/partstest spool/disk",
	// A real PostgreSQL for tests.
	"spool/database/postgres/postgrestest": "metrics/partstest spool/database/postgres/connection " +
		"spool/database/postgres/schema",
	"api/edge/edgetest":          "",
	"api/auth/oidc/oidctest":     "metrics/partstest",
	"api/otlp/otlptest":          "api/otlp",
	"api/wire/packed/packedtest": "api/wire/packed",
	// The rooms of the command. Nothing imports the command itself.
	"cmd/promptspool/internal/agents": "api/mcp api/wire api/wire/jsonscan spool/disk " +
		"cmd/promptspool/internal/config",
	"cmd/promptspool/internal/machine":    "api/admission api/edge api/wire",
	"cmd/promptspool/internal/datafolder": "api/ops spool/disk spool/rawlog",
	"cmd/promptspool/internal/logging":    "",
	"cmd/promptspool/internal/config": "api/client api/filterline api/wire api/wire/yamlreader api/words metrics " +
		"proxy/redact cmd/promptspool/internal/datafolder cmd/promptspool/internal/logging",
	"cmd/promptspool/internal/completion": "api/client api/dashboard/docs api/filterline api/wire api/words " +
		"cmd/promptspool/internal/config cmd/promptspool/internal/print",
	"cmd/promptspool/internal/demo":   "api/wire api/wire/packed",
	"cmd/promptspool/internal/print":  "api/wire api/wire/jsonscan api/words cmd/promptspool/internal/config",
	"cmd/promptspool/internal/filter": "api/filterline api/wire cmd/promptspool/internal/config",
	"cmd/promptspool/internal/requests": "api/client api/dashboard/number api/filterline api/tracetree " +
		"api/wire api/words api/calls cmd/promptspool/internal/config cmd/promptspool/internal/filter " +
		"cmd/promptspool/internal/print",
	"cmd/promptspool/internal/templates": "api/client api/dashboard/number api/wire api/wire/jsonscan " +
		"registry/gitfiles registry/render cmd/promptspool/internal/config cmd/promptspool/internal/filter " +
		"cmd/promptspool/internal/print",
	"cmd/promptspool/internal/experiments": "api/calls api/client api/dashboard/number api/experiment api/wire " +
		"api/wire/jsonscan spool/disk cmd/promptspool/internal/config cmd/promptspool/internal/filter " +
		"cmd/promptspool/internal/machine cmd/promptspool/internal/print",
	"cmd/promptspool/internal/alerts": "api/client api/dashboard/number api/wire cmd/promptspool/internal/config " +
		"cmd/promptspool/internal/print",
	"cmd/promptspool/internal/scores": "api/wire cmd/promptspool/internal/config cmd/promptspool/internal/print",
	"cmd/promptspool/internal/spooltool": "api/client api/ops api/wire metrics proxy spool/queue " +
		"cmd/promptspool/internal/config cmd/promptspool/internal/datafolder cmd/promptspool/internal/print",
	"cmd/promptspool/internal/archivetool": "api/ops api/wire metrics registry/prices spool/archive " +
		"spool/archive/records spool/database/badgerdb spool/database/postgres spool/database/transfer spool/disk " +
		"cmd/promptspool/internal/config cmd/promptspool/internal/datafolder cmd/promptspool/internal/print",
	// What is deployed, with its tests, which are a module of their own.
	"cmd/promptspool/deploy": "",
	// Tests of the whole program, as processes, and what starts them: a module of their own.
	"cmd/promptspool/e2e": "",
	"cmd/promptspool/e2e/harness": "api/dashboard/docs api/openapitest api/wire " +
		"cmd/promptspool/e2e/description metrics/partstest spool/disk/disktest",
	// What makes openapi.json and the pages of the API.
	"cmd/promptspool/e2e/openapi": "api/access api/wire api/wire/jsonscan",
	// What tests of other modules run, because it takes modules that only tests use.
	"cmd/promptspool/e2e/baddisk":     "spool/disk/disktest",
	"cmd/promptspool/e2e/description": "api/dashboard/docs api/openapitest cmd/promptspool/e2e/openapi",
	"cmd/promptspool/e2e/issuer":      "api/auth/oidc/oidctest",
	"cmd/promptspool/e2e/tools": "cmd/promptspool/e2e/baddisk cmd/promptspool/e2e/description " +
		"cmd/promptspool/e2e/issuer",
	"cmd/promptspool/e2e/bench":      "",
	"cmd/promptspool/e2e/clients":    "",
	"cmd/promptspool/e2e/cost":       "",
	"cmd/promptspool/e2e/dashboard":  "",
	"cmd/promptspool/e2e/delivery":   "",
	"cmd/promptspool/e2e/durability": "",
	"cmd/promptspool/e2e/install":    "",
	"cmd/promptspool/e2e/overload":   "",
	"cmd/promptspool/e2e/releases":   "",
}

// command may import everything.
const command = "cmd/promptspool"

// topLevel are the files and folders that may be at the top, besides dotfiles.
var topLevel = strings.Fields(
	"cmd proxy spool api registry metrics Dockerfile go.mod go.sum README.md LICENSE CHANGELOG.md Makefile")

// parsedFile is one parsed file of the project.
type parsedFile struct {
	path string // from the top, with slashes
	dir  string
	test bool
	file *ast.File
}

// sources parses every Go file of the project. It reads the files, and not `go list`,
// whose result the test cache would hide.
func sources(t *testing.T) []parsedFile {
	t.Helper()
	var all []parsedFile
	top := os.DirFS("../..")

	err := fs.WalkDir(top, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if name := d.Name(); err == nil && path != "." && strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := fs.ReadFile(top, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, parsedFile{
			path: path,
			dir:  filepath.ToSlash(filepath.Dir(path)),
			test: strings.HasSuffix(path, "_test.go"),
			file: file,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	seen := 0
	for _, s := range sources(t) {
		allowed, known := imports[s.dir]
		if s.dir == command {
			continue
		}
		if !known {
			t.Errorf("%s: its package is not in the table", s.path)
		}

		for _, spec := range s.file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			ours, ok := strings.CutPrefix(path, "promptspool/")
			if !ok {
				continue
			}
			seen++
			switch {
			case ours == command:
				t.Errorf("%s imports %s; nothing may", s.path, ours)
			case s.test || slices.Contains(strings.Fields(allowed), ours):
			default:
				t.Errorf("%s imports %s; %s may import: %s", s.path, ours, s.dir, allowed)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d imports of our own were seen; the test does not look at the project", seen)
	}
}

func TestEveryPackageSaysWhatItPromises(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		doc := s.file.Doc.Text()
		name := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			name = "Command "
		}
		documented[s.dir] = documented[s.dir] || strings.HasPrefix(doc, name)
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment that begins with its name", dir)
		}
	}
}

func TestTheTopLevelHoldsWhatItShould(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(topLevel, e.Name()) && e.Name() != "promptspool" {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
}

// required finds the modules that a go.mod requires, with their versions.
var required = regexp.MustCompile(`(?m)^(?:require)?\s(\S+) (v\S+)`)

// Otherwise the scenes would run another program than the one that is shipped.
func TestTheModulesOfTestsTakeWhatTheProgramTakes(t *testing.T) {
	versions := func(path string) map[string]string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, m := range required.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = m[2]
		}
		return found
	}

	program := versions("../../go.mod")
	for _, module := range []string{"e2e", "deploy"} {
		compared := 0
		for path, version := range versions(module + "/go.mod") {
			if of, shared := program[path]; shared {
				compared++
				if of != version {
					t.Errorf("%s takes %s %s, the program %s", module, path, version, of)
				}
			}
		}
		if compared < 10 {
			t.Errorf("only %d modules of %s were compared", compared, module)
		}
	}
}

// Windows neither renames nor removes what is open or mapped: package disk waits until it is not.
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

// filesMax is how many program files, and how many test files, a folder may have.
const filesMax = 25

// crowded are the folders with more files, and why.
var crowded = map[string]string{}

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
