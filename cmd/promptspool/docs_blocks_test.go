package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"go.yaml.in/yaml/v3"

	"promptspool/api"
	"promptspool/api/filterline"
	"promptspool/cmd/promptspool/internal/config"
)

// block is a fenced block of a page: ```LANGUAGE MARK REST.
type block struct {
	page, language, mark, rest, code string
	generated                        bool // from the code, with which other tests compare it
}

// runnable are the languages of the blocks that ./e2e runs, compiles or saves.
var runnable = strings.Fields("sh python javascript go yaml json sql")

// checkedByE2E are the languages of shown blocks that ./e2e gives to the program that reads them.
var checkedByE2E = strings.Fields("nginx ini sql python javascript go toml")

// checkersOfBlocks find the faults of blocks that are shown and not run.
var checkersOfBlocks = map[string]func(block) error{
	"sh":         block.shell,
	"json":       block.json,
	"yaml":       block.yaml,
	"text":       func(block) error { return nil }, // a drawing, or a program's output
	"powershell": block.powershell,
	"caddyfile":  block.caddyfile,
}

// fault returns what is wrong with a block, or with the way in which it is tested.
func (b block) fault() error {
	check := checkersOfBlocks[b.language]
	switch {
	case b.page == "README" && b.language == "sh" && b.mark == "":
		return b.shell() // GitHub would show a mark; the session has a test of its own
	case b.generated && b.language == "text":
		return nil
	case b.language == "text" && b.mark == "":
		return b.filterLine()
	case b.mark == "run" || b.mark == "compile":
		if !slices.Contains(runnable, b.language) {
			return fmt.Errorf("./e2e cannot %s it", b.mark)
		}
		if b.language == "sh" && b.rest != "" && !printed.MatchString(b.rest) {
			return fmt.Errorf("%s does not say what it prints", b.rest)
		}
		return nil
	case b.mark != "shown" || len(b.rest) <= len("(because)") || !strings.HasPrefix(b.rest, "("):
		return errors.New("mark it run, compile or shown (because ...)")
	case slices.Contains(checkedByE2E, b.language):
		return nil
	case check == nil:
		return errors.New("no test checks this language: add a checker")
	}

	return check(b)
}

// printed is what follows the mark of a shell block that ./e2e runs: what must be in its output.
var printed = regexp.MustCompile(`^\(prints [^']+\)$`)

// blocksOf returns the blocks and the code spans of a page.
func blocksOf(t *testing.T, path string) (all []block, spans []string) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.TrimSuffix(filepath.Base(path), ".md")
	generated := false

	document := goldmark.DefaultParser().Parse(text.NewReader(source))
	err = ast.Walk(document, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if !in {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock:
			comment := string(n.Lines().Value(source))
			goesOn := generated && !strings.Contains(comment, "<!-- end")
			generated = goesOn || strings.Contains(comment, "<!-- generated")
		case *ast.CodeSpan:
			var code strings.Builder
			for part := n.FirstChild(); part != nil; part = part.NextSibling() {
				code.Write(part.(*ast.Text).Value(source))
			}
			spans = append(spans, strings.ReplaceAll(code.String(), "\n", " "))
		case *ast.CodeBlock:
			all = append(all, block{page: page, code: string(n.Lines().Value(source))})
		case *ast.FencedCodeBlock:
			info := ""
			if n.Info != nil {
				info = string(n.Info.Value(source))
			}
			language, rest, _ := strings.Cut(info, " ")
			mark, rest, _ := strings.Cut(rest, " ")
			all = append(all, block{page, language, mark, rest, string(n.Lines().Value(source)), generated})
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return all, spans
}

// TestEveryBlockOfThePagesIsRunOrChecked fails for a block that no test would notice to be wrong.
//
// A block is run (./e2e runs it against a server, or saves it under the name behind the
// mark), compiled, or shown with the reason in parentheses. What is shown is read all the
// same by what it is for: commands by our own command table, settings by `config check`.
func TestEveryBlockOfThePagesIsRunOrChecked(t *testing.T) {
	withoutVariables(t)
	pages, err := filepath.Glob(docsFolder + "*.md")
	if err != nil || len(pages) < 20 {
		t.Fatal(pages, err)
	}

	for _, page := range append(pages, "../../README.md") {
		blocks, spans := blocksOf(t, page)
		for i, b := range blocks {
			if err := b.fault(); err != nil {
				t.Errorf("%s: block %d, %s %s %s: %v", b.page, i+1, b.language, b.mark, b.rest, err)
			}
		}
		for _, span := range spans {
			args, ours := strings.CutPrefix(strings.TrimPrefix(span, "sudo "), "promptspool ")
			if words := strings.Fields(args); ours && words[0] != "COMMAND" {
				if err := commandLineFault(words); err != nil {
					t.Errorf("%s: `%s`: %v", page, span, err)
				}
			}
		}
	}
}

func TestABlockWithAFaultIsFound(t *testing.T) {
	withoutVariables(t)
	shown := func(language, rest, code string) block {
		return block{language: language, mark: "shown", rest: "(" + rest + ")", code: code + "\n"}
	}
	for name, b := range map[string]block{
		"no mark":          {language: "sh", code: "promptspool up\n"},
		"no language":      {code: "promptspool up\n"},
		"no reason":        {language: "sh", mark: "shown", code: "promptspool up\n"},
		"unknown language": shown("cobol", "it is old", ""),
		"cannot be run":    {language: "nginx", mark: "run"},
		"no output":        {language: "sh", mark: "run", rest: "(shows one)"},

		"a flag":         shown("sh", "it runs long", "promptspool up --dta x"),
		"a command":      shown("sh", "it runs long", "a=1 sudo promptspool upp"),
		"an argument":    shown("sh", "it runs long", "promptspool up \\\n  now"),
		"in a container": shown("sh", "it runs long", "docker run promptspool sidecar --x"),
		"a target":       shown("sh", "it runs long", "make tests"),
		"a folder":       shown("sh", "for clusters", "kubectl apply -k cmd/promptspool/deploy/k8s"),
		"a program":      shown("sh", "it runs long", "true && frobnicate"),
		"a quote":        shown("sh", "it runs long", "promptspool docs 'limits"),
		"a route":        shown("sh", "an example", "curl http://127.0.0.1:8788/rest/nowhere"),
		"a body":         shown("sh", "an example", "curl http://127.0.0.1:8788/track-score -d '{a}'"),
		"a script":       shown("powershell", "for Windows", "./instal.ps1"),

		"JSON":        shown("json", "an answer", `{"a": 1,}`),
		"a setting":   shown("yaml", "for servers", "server: {lisen: x}"),
		"a step":      shown("yaml", "a workflow", "jobs: {a: {steps: [{run: promptspool templates pus x}]}}"),
		"some YAML":   shown("yaml", "for others", "a: 1"),
		"a filter":    {language: "text", code: "\"unclosed\n"},
		"an upstream": shown("caddyfile", "not tried", "a {\n reverse_proxy 127.0.0.1:8787\n}"),
	} {
		if err := b.fault(); err == nil {
			t.Errorf("a block with a fault (%s) is accepted", name)
		}
	}
}

// commandLineFault reads a command line as the binary does, without running it.
func commandLineFault(args []string) error {
	app := newApp(io.Discard, io.Discard)
	ran := false
	var stub func([]*cli.Command)
	stub = func(commands []*cli.Command) {
		for _, c := range commands {
			if len(c.Subcommands) > 0 {
				stub(c.Subcommands)
				continue
			}
			c.Before = nil
			c.Action = config.Command(strings.TrimSpace(c.Name+" "+c.ArgsUsage), "", func(*cli.Context) error {
				ran = true
				return nil
			}).Action
		}
	}
	stub(app.Commands)

	err := app.Run(config.Permute(app, append([]string{"promptspool"}, args...)))
	isGroup := err == nil && !ran && !slices.Contains(args, "--help") && !slices.Contains(args, "--version")
	if isGroup && app.Command(strings.Join(args, " ")) == nil {
		return fmt.Errorf("promptspool %s does nothing", strings.Join(args, " "))
	}

	return err
}

// shellCommands splits a script into its simple commands, and those into words. Quotes are
// removed; what is in $(...) is split as well.
func shellCommands(code string) (all [][]string) {
	var words []string
	word, isWord, quote := "", false, rune(0)
	endWord := func() {
		if isWord {
			words = append(words, word)
		}
		word, isWord = "", false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}

	comment := false
	for _, r := range strings.ReplaceAll(code, "\\\n", " ") {
		switch {
		case comment:
			if comment = r != '\n'; !comment {
				endCommand()
			}
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, isWord = r, true
		case r == ' ' || r == '\t':
			endWord()
		case strings.ContainsRune("\n|;&()", r):
			endCommand()
		case r == '#' && !isWord:
			comment = true
		default:
			word += string(r)
			isWord = true
		}
	}
	endCommand()

	return all
}

// othersCommands need no check of ours: they are other people's programs.
var othersCommands = strings.Fields("base64 cat date dpkg echo export grep head helm install journalctl kubectl npm " +
	"npx openssl sed sha256sum sleep sudoedit systemctl tar tr true")

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// shell checks the commands of a script.
func (b block) shell() error {
	said, err := exec.Command("bash", "-n", "-c", b.code).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %s", err, said)
	}

	for _, words := range shellCommands(b.code) {
		for len(words) > 0 && (words[0] == "sudo" || assignment.MatchString(words[0])) {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		if err := commandFault(words); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(words, " "), err)
		}
	}

	return nil
}

func commandFault(words []string) error {
	for _, word := range words {
		if path := strings.TrimSuffix(word, "/..."); strings.Contains(path, "cmd/promptspool") {
			if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
				return err
			}
		}
	}

	switch name, args := filepath.Base(words[0]), words[1:]; {
	case name == "promptspool":
		return commandLineFault(args)
	case name == "go" && len(args) > 1 && args[0] == "run" && args[1] == "./cmd/promptspool":
		return commandLineFault(args[2:])
	case name == "go" && slices.Contains([]string{"run", "test", "vet"}, args[0]):
		return nil // its packages are there, and so in the loop above
	case name == "make":
		return targetFault(args)
	case name == "docker":
		if image := slices.Index(args, "promptspool"); args[0] == "run" && image >= 0 {
			return commandLineFault(args[image+1:])
		}
		return nil
	case name == "curl":
		return curlFault(args)
	case name == "sh" && len(args) > 0:
		_, err := os.Stat("deploy/release/" + args[0])
		return err
	case slices.Contains(othersCommands, name):
		return nil
	}

	return errors.New("no test checks this command: if it is not ours, add it to othersCommands")
}

// targetFault checks that the Makefile has a target.
func targetFault(args []string) error {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		return err
	}
	for _, arg := range args {
		if !assignment.MatchString(arg) && !strings.Contains(string(makefile), "\n"+arg+":") {
			return fmt.Errorf("the Makefile has no target %s", arg)
		}
	}

	return nil
}

// localCall is a URL of a server or sidecar in an example.
var localCall = regexp.MustCompile(`^http://127\.0\.0\.1:878[78](/[^?]*)`)

// shellVariable is a variable within an argument.
var shellVariable = regexp.MustCompile(`\$[A-Z_]+`)

// curlFault checks that a call of our API has a route, and that its body is JSON.
func curlFault(args []string) error {
	method, path := "GET", ""
	for i, arg := range args {
		switch m := localCall.FindStringSubmatch(arg); {
		case m != nil:
			path = m[1]
		case arg == "-X":
			method = args[i+1]
		case strings.HasPrefix(arg, "-X"):
			method = arg[2:]
		case arg == "-d":
			// A variable may stand for a number.
			if !json.Valid(shellVariable.ReplaceAll([]byte(args[i+1]), []byte("1"))) {
				return fmt.Errorf("its body is not JSON: %s", args[i+1])
			}
			if method == "GET" {
				method = "POST"
			}
		}
	}
	if path == "" || strings.Contains(path, "openapi") {
		return nil
	}

	for _, route := range api.Routes() {
		pattern := identifierBraces.ReplaceAllString(regexp.QuoteMeta(strings.ReplaceAll(route, "{}", "ID")), "ID")
		pattern = strings.ReplaceAll(pattern, "ID", ".+")
		if ok, err := regexp.MatchString("^"+pattern+"$", method+" "+path); ok || err != nil {
			return err
		}
	}

	return fmt.Errorf("no route is %s %s", method, path)
}

// json checks that every document of the block is JSON.
func (b block) json() error {
	for decoder := json.NewDecoder(strings.NewReader(b.code)); ; {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// filterLine checks a line of a filter: that is what a text without a mark is.
func (b block) filterLine() error {
	_, err := filterline.Parse(strings.TrimSpace(b.code))
	return err
}

// powershell checks that the scripts it calls are of the release.
func (b block) powershell() error {
	for _, name := range regexp.MustCompile(`[a-z]+\.ps1`).FindAllString(b.code, -1) {
		if _, err := os.Stat("deploy/release/" + name); err != nil {
			return err
		}
	}

	return nil
}

// caddyfile checks where it leads.
func (b block) caddyfile() error {
	isWhole := strings.Count(b.code, "{") == strings.Count(b.code, "}")
	if !isWhole || !strings.Contains(b.code, " reverse_proxy "+config.ServerListen+"\n") {
		return errors.New("its braces are not in pairs, or it does not lead to " + config.ServerListen)
	}

	return nil
}

// yaml checks a file of settings, or the steps of a workflow. The tests of ./deploy check what
// is for a cluster.
func (b block) yaml() error {
	if strings.HasPrefix(b.rest, "(values ") || strings.HasSuffix(b.rest, " of your chart)") {
		return nil
	}
	var top map[string]any
	if err := yaml.Unmarshal([]byte(b.code), &top); err != nil {
		return err
	}
	switch {
	case top["apiVersion"] != nil:
		return nil
	case top["server"] != nil || top["sidecar"] != nil:
		return b.settings()
	case top["jobs"] != nil:
		return b.workflow()
	}
	return errors.New("no test checks YAML of this kind")
}

// settings checks a file of settings as `config check` does, but for the files that it names.
func (b block) settings() error {
	dir, err := os.MkdirTemp("", "settings")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(b.code), 0o600); err != nil {
		return err
	}

	var said strings.Builder
	app := newApp(io.Discard, io.Discard)
	if err := app.Run([]string{"promptspool", "config", "check", path}); err != nil {
		for line := range strings.Lines(err.Error()) {
			if !strings.Contains(line, "no such file or directory") {
				said.WriteString(line)
			}
		}
	}
	if said.Len() > 0 {
		return errors.New(said.String())
	}

	return nil
}

// workflow checks the commands of a pipeline's steps.
func (b block) workflow() error {
	var w struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal([]byte(b.code), &w); err != nil {
		return err
	}
	for _, job := range w.Jobs {
		for _, step := range job.Steps {
			if err := (block{code: step.Run}).shell(); err != nil {
				return err
			}
		}
	}

	return nil
}

// What the packages' file of settings proposes is right as well, when its marks are removed.
func TestTheProposedSettingsOfThePackagesAreGood(t *testing.T) {
	withoutVariables(t)
	content, err := os.ReadFile("deploy/systemd/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	proposed := strings.ReplaceAll(string(content), "  #", "  ")
	if n := strings.Count(string(content), "  #"); n < 8 {
		t.Errorf("%d lines are proposed", n)
	}
	if err := (block{code: proposed}).settings(); err != nil {
		t.Error(err)
	}
	if err := (block{code: strings.ReplaceAll(proposed, "retention-age", "retain-age")}).settings(); err == nil {
		t.Error("a misspelt setting is accepted")
	}
}

// dataFolder matches a folder of data, after the role that it is of where that is named.
var dataFolder = regexp.MustCompile(`(?:(server|sidecar)[^\n]*--data |(server|sidecar):\n  data: )?(/var/lib/[a-z/-]+)`)

// One role has one folder on all pages: that of the packages.
func TestThePagesNameTheFoldersOfThePackages(t *testing.T) {
	folders := map[string]string{"sidecar": "/var/lib/promptspool", "server": "/var/lib/promptspool-server"}
	for role, folder := range folders {
		unit, err := os.ReadFile("deploy/systemd/promptspool-" + role + ".service")
		if err != nil || !strings.Contains(string(unit), "\nStateDirectory="+filepath.Base(folder)+"\n") {
			t.Errorf("the folder of the %s is not %s: %v", role, folder, err)
		}
	}
	pages, err := filepath.Glob(docsFolder + "*.md")
	if err != nil {
		t.Fatal(err)
	}

	named := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range dataFolder.FindAllStringSubmatch(string(text), -1) {
			named++
			// systemd keeps it in private; two servers on one machine are a and b.
			folder := strings.Replace(m[3], "/private/", "/", 1)
			folder = strings.TrimSuffix(strings.TrimSuffix(folder, "-a"), "-b")
			role := m[1] + m[2]
			if folder != folders["server"] && folder != folders["sidecar"] || role != "" && folder != folders[role] {
				t.Errorf("%s: the folder of a %s is %s", page, role, m[3])
			}
		}
	}
	if named < 10 {
		t.Errorf("the pages name only %d folders", named)
	}
}
