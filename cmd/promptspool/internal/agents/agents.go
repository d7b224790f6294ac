// Package agents has the command `promptspool mcp`: coding agents start it to read records and templates, and
// it sets them up for that.
package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/urfave/cli/v2"

	"promptspool/api/mcp"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/spool/disk"
)

// Command is `promptspool mcp`: the tools of a server for an agent on this machine.
func Command() *cli.Command {
	var names []string
	for _, a := range agents {
		names = append(names, a.name)
	}

	return config.Command("mcp [setup]",
		"let a coding agent read records and templates, over MCP; with setup, show the agent's entry for that",
		run, []cli.Flag{
			config.ChoiceFlag("client", "", "which `agent` to set up", names...),
			config.SwitchFlag("write", "write it into the agent's own file, which keeps everything else"),
		}, config.ServerFlags())
}

func run(c *cli.Context) error {
	v := config.Read(c)
	switch {
	case c.Args().First() == "setup" && c.NArg() == 1:
		return setUp(c, v)
	case c.Args().Present():
		return config.Usagef(c, "unexpected argument %q: give setup or nothing", c.Args().First())
	}

	cl, id, err := v.Remote()
	if err != nil {
		return err
	}
	call := func(ctx context.Context, method, target string, body []byte) (json.RawMessage, error) {
		return cl.Call(ctx, id, method, target, body)
	}
	server := mcp.New(mcp.Config{Version: c.App.Version, Call: call, Panicked: func(p any) { panic(p) }})
	return server.Run(c.Context)
}

// agent is a program that starts `promptspool mcp`, and where it keeps how.
type agent struct {
	name   string
	home   func() (string, error)
	file   string
	member string // of the file, with a member for each server; "" means that the file is TOML
}

var agents = []agent{
	{"claude", os.UserHomeDir, ".claude.json", "mcpServers"},
	{"codex", os.UserHomeDir, ".codex/config.toml", ""},
	{"cursor", os.UserHomeDir, ".cursor/mcp.json", "mcpServers"},
	{"vscode", os.UserConfigDir, "Code/User/mcp.json", "servers"},
	{"gemini", os.UserHomeDir, ".gemini/settings.json", "mcpServers"},
}

// entryName is that of our entry among an agent's servers.
const entryName = "promptspool"

// entry is how an agent starts us.
type entry struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

// setUp shows what an agent needs to start `promptspool mcp` with the server and the key that this command has, or
// writes it.
func setUp(c *cli.Context, v *config.Reader) error {
	name := v.OneOf("client")
	if name == "" && v.Sound() {
		v.Required("client")
	}
	e, err := newEntry(v)
	if err != nil {
		return err
	}

	a := agents[slices.IndexFunc(agents, func(a agent) bool { return a.name == name })]
	home, err := a.home()
	if err != nil {
		return err
	}
	path := filepath.Join(home, filepath.FromSlash(a.file))
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	// A new file takes it in any case.
	shown, _ := a.add(nil, e)
	if !v.Given("write") {
		fmt.Fprintf(c.App.Writer, "%s\n", bytes.TrimSpace(shown))
		fmt.Fprintf(c.App.ErrWriter, "Add this to %s, or let --write do it.\n", path)
		return nil
	}

	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	content, err := a.add(before, e)
	if err != nil {
		return fmt.Errorf("%s %w; add this to it yourself:\n%s", path, err, shown)
	}
	// It may have the key, so only its owner can read it from now on.
	err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), disk.WriteFile(path, path+".promptspool", content))
	if err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "Wrote %s to %s. Start the agent again.\n", entryName, path)

	return nil
}

// newEntry returns how an agent starts this program. A key that login keeps stays where it is.
func newEntry(v *config.Reader) (*entry, error) {
	cl, id, err := v.Remote()
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	all, unread := config.ReadContexts()
	if err := errors.Join(err, unread); err != nil {
		return nil, err
	}

	e := &entry{Command: program, Args: []string{"mcp"}, Env: map[string]string{}}
	for _, f := range config.TrustFlags("url") {
		if name := f.Names()[0]; v.Text(name) != "" {
			// The agent starts us elsewhere.
			e.Env[config.Variables(name)[0]], _ = filepath.Abs(v.Text(name))
		}
	}
	used := config.Context{URL: cl.URL(""), Key: string(id.Key)}
	for name, kept := range all.Named {
		if kept == used {
			e.Args = append(e.Args, "--context", name)
			return e, nil
		}
	}
	e.Env[config.Variables("url")[0]], e.Env[config.Variables("key")[0]] = used.URL, used.Key

	return e, nil
}

// table finds our entry in a TOML file.
var table = regexp.MustCompile(`(?m)^\s*\[\s*mcp_servers\s*\.\s*["']?` + entryName + `\b`)

// add returns the content of the agent's file with the entry. Its error is a predicate of the file.
func (a agent) add(content []byte, e *entry) ([]byte, error) {
	if a.member == "" {
		if table.Match(content) {
			return nil, errors.New("has an entry for promptspool already")
		}
		return append(content, e.toml()...), nil
	}

	content = bytes.TrimSpace(content)
	if len(content) == 0 {
		content = []byte("{}")
	}
	file, err := wire.ParseObject(content)
	if err != nil {
		return nil, errors.New("is not a JSON object without comments")
	}
	servers, ok := file.Get(a.member)
	if !ok || string(servers) == "null" {
		servers = []byte("{}")
	}
	if servers[0] != '{' {
		return nil, fmt.Errorf("has something else than servers in %s", a.member)
	}

	// Everything else stays as it is, except for blanks.
	var b bytes.Buffer
	err = json.Indent(&b, set(content, a.member, set(servers, entryName, encoded(e))), "", "  ")
	return append(b.Bytes(), '\n'), err
}

// set returns a JSON object with a member, in the place of one of this name or after the others.
func set(object []byte, name string, value []byte) []byte {
	separator := ""
	for m := range jsonscan.Members(object) {
		if m.Name == name {
			return slices.Concat(object[:m.End-len(m.Value)], value, object[m.End:])
		}
		separator = ","
	}

	last := bytes.LastIndexByte(object, '}')
	return fmt.Appendf(nil, "%s%s%q:%s}", object[:last], separator, name, value)
}

// encoded returns JSON of what can always be encoded.
func encoded(v any) []byte {
	text, _ := jsonscan.Marshal(v)
	return text
}

// toml returns the entry as a table of TOML, whose texts and lists are written as those of JSON.
func (e *entry) toml() []byte {
	b := fmt.Appendf(nil, "\n[mcp_servers.%s]\ncommand = %s\nargs = %s\n\n[mcp_servers.%[1]s.env]\n",
		entryName, encoded(e.Command), encoded(e.Args))
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		b = fmt.Appendf(b, "%s = %s\n", name, encoded(e.Env[name]))
	}

	return b
}
