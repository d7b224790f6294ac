package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"promptspool/api/wire/yamlreader"
	"promptspool/api/words"
	"promptspool/proxy/redact"
)

// Sections are what a configuration file holds: the settings of each role, named like its flags.
var Sections = []string{"sidecar", "server"}

// File is a configuration file, read strictly: a setting that would be ignored is an error.
type File struct {
	Path     string
	Sections map[string]Section
}

// Section is the settings of one role, in their order.
type Section struct {
	settings []setting
	redact   []placedRule
}

// setting is one line of a file; a list has several values.
type setting struct {
	name   string
	line   int
	values []string
}

// FileFlag names the configuration file of a role.
func FileFlag() cli.Flag {
	return TextFlag("config", "", "YAML `file`; flag names without dashes, nested under the command name; "+
		"flags and variables come before it")
}

// ReadFile reads a configuration file and reports every error in it, with line numbers.
func ReadFile(app *cli.App, path string) (File, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("--config: %w", err)
	}
	return ParseFile(app, path, content)
}

// ParseFile is ReadFile for the content of a file.
func ParseFile(app *cli.App, path string, content []byte) (File, error) {
	file := File{Path: path, Sections: map[string]Section{}}
	var document yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(content)))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return file, fmt.Errorf("%s is not YAML: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}

	p := configParser{Reader: yamlreader.Reader{Path: path}, app: app}
	if decoder.Decode(new(yaml.Node)) != io.EOF {
		p.Fault(1, "there is more than one document, or something that is not YAML after the first; keep one")
	}
	if len(document.Content) == 1 {
		p.Members(document.Content[0], "the file", func(key, value *yaml.Node) {
			if !slices.Contains(Sections, key.Value) {
				p.Fault(key.Line, "there is no section %q; there are: %s", key.Value, strings.Join(Sections, ", "))
				return
			}
			file.Sections[key.Value] = p.section(key.Value, value)
		})
	}
	return file, errors.Join(p.Faults...)
}

// configParser reads a configuration file strictly.
type configParser struct {
	yamlreader.Reader
	app *cli.App // has the flags of the roles
}

// section reads the settings of a role.
func (p *configParser) section(role string, node *yaml.Node) Section {
	var s Section
	flags := RoleFlags(p.app, role)
	p.Members(node, role, func(key, value *yaml.Node) {
		if key.Value == "redact" && role == "sidecar" {
			s.redact = p.rules(value)
			return
		}

		// Strictly, because a bound that is written wrongly would be no bound.
		flag, known := flags[key.Value]
		if !known {
			near := words.DidYouMean(key.Value, slices.Sorted(maps.Keys(flags)))
			p.Fault(key.Line, "there is no setting %q of %s%s", key.Value, role,
				cmp.Or(near, "; `promptspool config print` lists all"))
			return
		}
		if texts, ok := p.texts(key.Value, flag, value); ok {
			s.settings = append(s.settings, setting{key.Value, key.Line, texts})
		}
	})
	return s
}

// texts reads a setting's value, or a list of them where the flag may be repeated.
func (p *configParser) texts(name string, flag cli.Flag, value *yaml.Node) ([]string, bool) {
	_, repeated := flag.(repeatedFlag)

	switch {
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		p.Fault(value.Line, "%s has no value; give one, or take the line out", name)
	case value.Kind == yaml.ScalarNode:
		return []string{value.Value}, true
	case value.Kind == yaml.SequenceNode && repeated:
		var texts []string
		for _, v := range value.Content {
			if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
				p.Fault(v.Line, "%s must be a list of words", name)
				return nil, false
			}
			texts = append(texts, v.Value)
		}
		return texts, len(texts) > 0
	default:
		p.Fault(value.Line, "%s takes one value", name)
	}
	return nil, false
}

// RoleFlags returns the flags that a section may set: all but the one that names the file.
func RoleFlags(app *cli.App, role string) map[string]cli.Flag {
	flags := map[string]cli.Flag{}
	for _, f := range app.Command(role).Flags {
		if f.Names()[0] != "config" {
			flags[f.Names()[0]] = f
		}
	}
	return flags
}

// ShownSetting is one setting, as it may be shown: a secret is masked.
type ShownSetting struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	From    string `json:"from"` // --flag, VARIABLE, FILE:LINE or "default"
}

// SettingsOf returns all settings of the role that c would run, in the order of its flags; redact is last.
func SettingsOf(c *cli.Context) []ShownSetting {
	var all []ShownSetting
	r := Read(c)
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if name == "help" {
			continue
		}

		s := ShownSetting{Setting: name, Value: r.Text(name), From: "default"}
		if _, repeated := f.(repeatedFlag); repeated {
			s.Value = strings.Join(r.List(name), ", ")
		}
		switch {
		// It is shown, because people look for the database; only its password is not.
		case name == "archive":
			s.Value = ShowArchive(s.Value)
		case IsSecret(name) && s.Value != "":
			s.Value = "[secret]"
		}
		if from := origin(c, name); from != "" && hasValue(c, name) {
			s.From = from
		}
		all = append(all, s)
	}

	rules, _ := c.App.Metadata[rulesKey].([]placedRule)
	for _, rule := range rules {
		all = append(all, ShownSetting{Setting: "redact", Value: rule.String(), From: rule.place})
	}
	return all
}

// IsSecret reports whether a setting's value must not be shown.
func IsSecret(name string) bool {
	return strings.HasSuffix(name, "key") || strings.HasSuffix(name, "secret") || strings.HasSuffix(name, "password")
}

// placedRule is a redaction rule and its place in the configuration: FILE:LINE.
type placedRule struct {
	redact.Rule
	place string
}

// String describes the rule as `config print` shows it.
func (r placedRule) String() string {
	matches := "builtin " + strings.Join(r.Builtin, ", ")
	if r.Path != "" {
		matches = "path " + r.Path
	} else if r.Pattern != "" {
		matches = "pattern " + r.Pattern
	}

	action := cmp.Or(r.Action, redact.Mask)
	return matches + ": " + action
}

// rules reads the list under redact. The package that applies the rules checks their contents.
func (p *configParser) rules(node *yaml.Node) (rules []placedRule) {
	if node.Kind != yaml.SequenceNode {
		p.Fault(node.Line, "redact must be a list of rules, such as - {builtin: [email, card], action: mask}")
		return nil
	}

	for _, entry := range node.Content {
		r := placedRule{place: fmt.Sprintf("%s:%d", p.Path, entry.Line)}
		p.Members(entry, "a rule", func(key, value *yaml.Node) { p.ruleMember(&r, key, value) })
		rules = append(rules, r)
	}
	return rules
}

// ruleMember reads one member of a rule.
func (p *configParser) ruleMember(r *placedRule, key, value *yaml.Node) {
	texts, ok := p.texts(key.Value, repeatedFlag{}, value)
	if !ok {
		return
	}

	member := map[string]*string{"path": &r.Path, "pattern": &r.Pattern, "action": &r.Action}[key.Value]
	switch {
	case key.Value == "builtin":
		r.Builtin = texts
	case member == nil:
		p.Fault(key.Line, "a rule has no %q; it has builtin, path or pattern, and action", key.Value)
	case value.Kind != yaml.ScalarNode:
		p.Fault(key.Line, "%s takes one value", key.Value)
	default:
		*member = texts[0]
	}
}

// RedactRules compiles the redaction rules of the configuration file; nil without any.
func (r *Reader) RedactRules() *redact.Rules {
	secret := r.Secret("redact-secret")
	placed, _ := r.c.App.Metadata[rulesKey].([]placedRule)
	var rules []redact.Rule
	for _, p := range placed {
		rules = append(rules, p.Rule)
	}

	made, index, err := redact.New(rules, []byte(secret))
	switch {
	// With the line of the rule: the package that checks it knows none.
	case err != nil && index >= 0:
		r.Note(fmt.Errorf("%s: redact: %w", placed[index].place, err))
	case err != nil:
		r.Note(fmt.Errorf("redact: %w", err))
	}
	return made
}
