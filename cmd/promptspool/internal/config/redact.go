package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"promptspool/proxy/redact"
)

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

	action := r.Action
	if action == "" {
		action = redact.Mask
	}
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
