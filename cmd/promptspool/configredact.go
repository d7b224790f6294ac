package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
	"promptspool/proxy/redact"
)

// placedRule is a redaction rule and where it stands: FILE:LINE.
type placedRule struct {
	redact.Rule
	place string
}

func (r placedRule) String() string {
	what := "builtin " + strings.Join(r.Builtin, ", ")
	if r.Path != "" {
		what = "path " + r.Path
	} else if r.Pattern != "" {
		what = "pattern " + r.Pattern
	}
	return what + ": " + r.action()
}

func (r placedRule) action() string {
	if r.Action == "" {
		return redact.Mask
	}
	return r.Action
}

// rules reads the list under redact. What the rules say is checked by the package that applies them.
func (p *configParser) rules(node *yaml.Node) (rules []placedRule) {
	if node.Kind != yaml.SequenceNode {
		p.fault(node.Line, "redact must be a list of rules, such as - {builtin: [email, card], action: mask}")
		return nil
	}
	for _, entry := range node.Content {
		r := placedRule{place: fmt.Sprintf("%s:%d", p.path, entry.Line)}
		p.members(entry, "a rule", func(key, value *yaml.Node) {
			texts, isText := p.texts(key.Value, list{}, value)
			if !isText {
				return
			}
			one := map[string]*string{"path": &r.Path, "pattern": &r.Pattern, "action": &r.Action}[key.Value]
			switch {
			case key.Value == "builtin":
				r.Builtin = texts
			case one == nil:
				p.fault(key.Line, "a rule has no %q; it has builtin, path or pattern, and action", key.Value)
			case value.Kind != yaml.ScalarNode:
				p.fault(key.Line, "%s takes one value", key.Value)
			default:
				*one = texts[0]
			}
		})
		rules = append(rules, r)
	}
	return rules
}

// redact makes the rules of the file; nil without any.
func (v *values) redact() *redact.Rules {
	secret := v.secret("redact-secret")
	placed, _ := v.c.App.Metadata[rulesKey].([]placedRule)
	var rules []redact.Rule
	for _, r := range placed {
		rules = append(rules, r.Rule)
	}
	made, index, err := redact.New(rules, []byte(secret))
	switch {
	case err != nil && index >= 0:
		v.note(fmt.Errorf("%s: redact: %w", placed[index].place, err))
	case err != nil:
		v.note(fmt.Errorf("redact: %w", err))
	}
	return made
}

func tryCommand() *cli.Command {
	return &cli.Command{
		Name: "try", Usage: "show what the redaction rules of a configuration file make of a record: the JSON in RECORD, of stdin for -, or a sample", ArgsUsage: "FILE [RECORD]",
		Action: tryConfig,
	}
}

// sampleRecord has one of everything that is built in, in the places where it is met most.
const sampleRecord = `{
  "function_name": "openai.ChatCompletion.create",
  "kwargs": {"model": "gpt-4o", "messages": [{"role": "user", "content": "Write to ann@example.com or call +1 415 555 0132.\nBearer abcdef0123456789"}]},
  "request_response": {"choices": [{"message": {"tool_calls": [{"function": {"name": "pay", "arguments": "{\"card\": \"4111 1111 1111 1111\", \"email\": \"Ann@example.com\"}"}}]}}]},
  "tags": ["for ann@example.com"],
  "metadata": {"user": "ann@example.com", "key": "sk-0123456789abcdefghijkl"}
}`

func tryConfig(c *cli.Context) error {
	if c.NArg() < 1 || c.NArg() > 2 {
		return usagef(c, "give the configuration file, and perhaps a file with a record to try it on; - reads stdin")
	}
	body, err := recordToTry(c.Args().Get(1))
	if err != nil {
		return err
	}
	object, err := wire.ParseObject(body)
	if err != nil {
		return err
	}
	body = secrets.Strip(body, object)
	var rules *redact.Rules
	err = evaluate([]string{"promptspool", "sidecar", "--config", c.Args().First()}, map[string]any{fileFirstKey: true}, func(c *cli.Context) error {
		v := &values{c: c}
		rules = v.redact()
		return v.err()
	})
	if err != nil {
		return err
	}
	counts := map[string]int{}
	result := rules.Body(body, func(rule, action string) { counts[rule+" "+action]++ })
	if err := printJSON(c.App.Writer, json.RawMessage(result)); err != nil {
		return err
	}
	var met []string
	for what, n := range counts {
		met = append(met, fmt.Sprintf("%s: %d", what, n))
	}
	slices.Sort(met)
	if len(met) == 0 {
		met = []string{"no rule met anything"}
	}
	fmt.Fprintln(c.App.ErrWriter, strings.Join(met, ", "))
	return nil
}

// recordToTry reads a record; "" is the sample.
func recordToTry(path string) ([]byte, error) {
	if path == "" {
		return []byte(sampleRecord), nil
	}
	in, err := fileOrStdin(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()

	return io.ReadAll(io.LimitReader(in, wire.BodyBytesMax+1))
}
