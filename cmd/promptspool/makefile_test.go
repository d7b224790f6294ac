package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// laptop is a machine on which somebody runs `make test`: a PATH with the tools that every
// machine has, and with programs that only note how they were called.
type laptop struct {
	t   *testing.T
	bin string
}

// plainTools are what the Makefile and .ci/install take for granted.
var plainTools = strings.Fields("make bash cat cp cut chmod dirname find grep mkdir mktemp mv paste ps rm sed " +
	"sha256sum sleep sort tr wc")

// newLaptop makes a machine that has all the parts that tests need, except the missing ones.
func newLaptop(t *testing.T, uid string, missing ...string) laptop {
	t.Helper()
	l := laptop{t, t.TempDir()}
	for _, name := range plainTools {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(l.bin, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	const notes = `echo "$(basename "$0") $* absent=[$PROMPTSPOOL_ABSENT]" >>"$CALLS"` + "\n"
	l.stub("basename", `echo "${1##*/}"`)
	l.stub("ls", "") // finds a PostgreSQL
	l.stub("id", "echo "+uid)
	l.stub("gofmt", "")
	l.stub("go", notes+`case "$*" in
	tool*) echo true ;;
	test*/e2e*) echo "TestOne needs chromium" >>"$PROMPTSPOOL_LEFT_OUT" ;;
	esac`)
	for _, part := range strings.Fields("curl losetup mount mkfs.ext4 mkfs.xfs mkfs.btrfs chromium-headless-shell " +
		"nginx node npm python3 promtool prometheus-alertmanager dpkg unshare systemd-analyze openssl zsh fish man") {
		l.stub(part, "")
	}
	l.stub("gcc", "cat >/dev/null") // it is given a program to compile
	for _, part := range missing {
		if err := os.Remove(filepath.Join(l.bin, part)); err != nil {
			t.Fatal(err)
		}
	}

	return l
}

// stub makes a program of a shell text.
func (l laptop) stub(name, text string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.bin, name), []byte("#!/bin/bash\n"+text+"\n"), 0o755); err != nil {
		l.t.Fatal(err)
	}
}

// makesTest runs `make test`, and returns its exit code, what it prints, standard output
// last, and the calls that were noted.
func (l laptop) makesTest(args ...string) (code int, out, calls string) {
	l.t.Helper()
	return l.makesTestAt(nil, args...)
}

// makesTestAt is makesTest with a terminal.
func (l laptop) makesTestAt(terminal *os.File, args ...string) (code int, out, calls string) {
	l.t.Helper()
	dir := l.t.TempDir()
	file := filepath.Join(dir, "calls")
	cmd := exec.Command(filepath.Join(l.bin, "make"), append([]string{"test"}, args...)...)
	cmd.Dir = "../.."
	cmd.Env = []string{"PATH=" + l.bin, "HOME=" + dir, "TMPDIR=" + dir, "CALLS=" + file}
	if terminal != nil {
		cmd.Stdin = terminal
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		l.t.Fatal(err)
	}

	noted, _ := os.ReadFile(file)
	out = stderr.String() + strings.TrimSpace(string(text))
	l.t.Logf("make test: %d\n%s", cmd.ProcessState.ExitCode(), out)

	return cmd.ProcessState.ExitCode(), out, string(noted)
}

// lastLine returns the last line of a text.
func lastLine(text string) string { return text[strings.LastIndex(text, "\n")+1:] }

func TestMakeTestSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	l := newLaptop(t, "1000", "chromium-headless-shell", "nginx")
	l.stub("apt-get", `echo "apt-get $*" >>"$CALLS"`)
	const want = "Left out: 1 of the tests. Missing: chromium nginx root"

	code, out, calls := l.makesTest()
	if code == 0 || lastLine(out) != want {
		t.Errorf("the code is %d, and the last line %q", code, lastLine(out))
	}
	if !strings.Contains(out, "Missing: chromium nginx root\n") || !strings.Contains(out, "TestOne needs chromium\n") {
		t.Errorf("it does not name what is missing and left out:\n%s", out)
	}
	if strings.Contains(calls, "apt-get") {
		t.Errorf("it installs without being root:\n%s", calls)
	}
	if n := strings.Count(calls, "absent=[chromium nginx root]"); n < 5 || !strings.Contains(calls, "go test") {
		t.Errorf("the tests are not told what is absent:\n%s", calls)
	}

	if code, out, _ := l.makesTest("QUICK=1"); code != 0 || lastLine(out) != want {
		t.Errorf("with QUICK=1 the code is %d, and the last line %q", code, lastLine(out))
	}

	// A test that fails is no matter of parts.
	l.stub("go", `[ "$1" != tool ] || echo true; [ "$1" != test ]`)
	if code, out, _ := l.makesTest("QUICK=1"); code == 0 || strings.Contains(out, "Left out") {
		t.Errorf("with a failing test the code is %d:\n%s", code, out)
	}
}

func TestMakeTestRunsEverythingWhereItCan(t *testing.T) {
	t.Parallel()
	l := newLaptop(t, "0")
	l.stub("apt-get", `echo "apt-get $*" >>"$CALLS"`)
	code, out, calls := l.makesTest()
	if code != 0 || strings.Contains(out, "Left out") || strings.Contains(out, "Missing") {
		t.Errorf("the code is %d:\n%s", code, out)
	}
	isWhole := strings.Contains(calls, "-race") && strings.Contains(calls, "absent=[]")
	if strings.Contains(calls, "apt-get") || !isWhole {
		t.Errorf("it calls:\n%s", calls)
	}

	// Without a compiler for C there is no race detector.
	l = newLaptop(t, "1000", "gcc")
	code, _, calls = l.makesTest()
	if code == 0 || strings.Contains(calls, "-race") || !strings.Contains(calls, "go test") {
		t.Errorf("without gcc the code is %d, and it calls:\n%s", code, calls)
	}
}

// CI runs as root on Debian: there nothing is ever left out.
func TestMakeTestInstallsAsRootOnDebian(t *testing.T) {
	t.Parallel()
	l := newLaptop(t, "0", "chromium-headless-shell", "node")
	l.stub("apt-get", `echo "apt-get $*" >>"$CALLS"
		[ "$1" = install ] || exit 0
		for part in chromium-headless-shell node; do
			echo "#!/bin/bash" >"${0%/*}/$part"
			chmod 755 "${0%/*}/$part"
		done`)
	code, out, calls := l.makesTest()
	if code != 0 || strings.Contains(out, "Left out") ||
		!strings.Contains(calls, "--no-install-recommends ca-certificates chromium-headless-shell nodejs\n") {
		t.Errorf("the code is %d, and it calls:\n%s", code, calls)
	}

	for name, installer := range map[string]string{"fails": "exit 1", "installs nothing": "true"} {
		l := newLaptop(t, "0", "chromium-headless-shell")
		l.stub("apt-get", installer)
		if code, out, calls := l.makesTest("QUICK=1"); code == 0 || strings.Contains(calls, "go test") {
			t.Errorf("when apt-get %s, the code is %d:\n%s\n%s", name, code, out, calls)
		}
	}
}

// unraced are the packages, or with a slash those under a folder, that start goroutines and
// are tested without the race detector all the same, and why.
var unraced = map[string]string{
	command:           "the scenes of e2e run its processes with the race detector",
	command + "/e2e/": "what it tests are other processes",
	"api/dashboard/":  "it keeps nothing from one request to the next",
	"spool/archive":   "its one lock is raced by the databases, which commit through it",
}

// TestWhereThreadsMeetIsRaced compares the packages that have a race_test.go with the sources: they are
// those whose code or tests start goroutines.
func TestWhereThreadsMeetIsRaced(t *testing.T) {
	raced, tested, concurrent := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", s.path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		raced[s.dir] = raced[s.dir] || filepath.Base(s.path) == "race_test.go"
		tested[s.dir] = tested[s.dir] || s.test
		concurrent[s.dir] = concurrent[s.dir] || startsGoroutines(file)
	}

	for dir := range tested {
		exempt := false
		for path := range unraced {
			exempt = exempt || dir == path || strings.HasSuffix(path, "/") && strings.HasPrefix(dir+"/", path)
		}
		if want := tested[dir] && concurrent[dir] && !exempt; raced[dir] != want {
			t.Errorf("%s has a race_test.go: %v, want %v", dir, raced[dir], want)
		}
	}
}

// startsGoroutines reports whether a file starts goroutines, itself or by a server of net/http/httptest.
func startsGoroutines(file *ast.File) (starts bool) {
	for _, spec := range file.Imports {
		starts = starts || spec.Path.Value == `"net/http/httptest"`
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.SelectorExpr:
			starts = starts || n.Sel.Name == "Go" || n.Sel.Name == "AfterFunc"
		}
		return true
	})
	return starts
}
