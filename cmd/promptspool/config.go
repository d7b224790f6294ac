package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"
)

// configBytesMax bounds a configuration file.
const configBytesMax = 1 << 20

// configSections are what a configuration file holds: the settings of each role, named like its flags.
var configSections = []string{"sidecar", "server"}

// configFile is a configuration file, read strictly: whatever it says that nobody would look at is a fault.
type configFile struct {
	path     string
	sections map[string]configSection
}

// configSection is the settings of one role, in their order.
type configSection struct {
	settings []setting
	redact   []placedRule
}

// setting is one line of a file; a list has several values.
type setting struct {
	name   string
	line   int
	values []string
}

func configFlag() cli.Flag {
	return stringFlag("config", "", "a YAML `file` with these flags, less their dashes, under the name of the command; flags and variables come before it")
}

// readConfig reads a file and reports all that is wrong with it, each with its line.
func readConfig(path string) (configFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return configFile{}, fmt.Errorf("--config: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, configBytesMax+1))
	if err != nil {
		return configFile{}, fmt.Errorf("--config: %w", err)
	}
	if len(content) > configBytesMax {
		return configFile{}, fmt.Errorf("--config: %s is larger than %d bytes", path, configBytesMax)
	}
	return parseConfig(path, content)
}

func parseConfig(path string, content []byte) (configFile, error) {
	file := configFile{path: path, sections: map[string]configSection{}}
	var document yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(content)))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return file, fmt.Errorf("%s is not YAML: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	p := configParser{path: path}
	if decoder.Decode(new(yaml.Node)) != io.EOF {
		p.fault(1, "there is more than one document, or something that is no YAML behind the first; keep one")
	}
	if len(document.Content) == 1 {
		p.members(document.Content[0], "the file", func(key, value *yaml.Node) {
			if !slices.Contains(configSections, key.Value) {
				p.fault(key.Line, "there is no section %q; there are: %s", key.Value, strings.Join(configSections, ", "))
				return
			}
			file.sections[key.Value] = p.section(key.Value, value)
		})
	}
	return file, errors.Join(p.faults...)
}

// configParser collects faults, so that all are told at once.
type configParser struct {
	path   string
	faults []error
}

func (p *configParser) fault(line int, format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%s:%d: %s", p.path, line, fmt.Sprintf(format, args...)))
}

// members walks a mapping, each key once. One that is empty is null, and has none.
func (p *configParser) members(node *yaml.Node, what string, each func(key, value *yaml.Node)) {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return
	}
	if node.Kind != yaml.MappingNode {
		p.fault(node.Line, "%s must hold settings of the form name: value", what)
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			p.fault(key.Line, "a setting's name must be a word")
			continue
		}
		if before := seen[key.Value]; before > 0 {
			p.fault(key.Line, "%s was set before, in line %d", key.Value, before)
			continue
		}
		seen[key.Value] = key.Line
		each(key, value)
	}
}

func (p *configParser) section(role string, node *yaml.Node) configSection {
	var s configSection
	flags := roleFlags(role)
	p.members(node, role, func(key, value *yaml.Node) {
		if key.Value == "redact" && role == "sidecar" {
			s.redact = p.rules(value)
			return
		}
		flag, known := flags[key.Value]
		if !known {
			p.fault(key.Line, "there is no setting %q of %s%s", key.Value, role, nearest(key.Value, flags))
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
	_, many := flag.(list)
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		p.fault(value.Line, "%s has no value; give one, or take the line out", name)
	case value.Kind == yaml.ScalarNode:
		return []string{value.Value}, true
	case value.Kind == yaml.SequenceNode && many:
		var texts []string
		for _, v := range value.Content {
			if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
				p.fault(v.Line, "%s must be a list of words", name)
				return nil, false
			}
			texts = append(texts, v.Value)
		}
		return texts, len(texts) > 0
	default:
		p.fault(value.Line, "%s takes one value", name)
	}
	return nil, false
}

// roleFlags are the flags that a section may set: all but those that say where the settings are.
func roleFlags(role string) map[string]cli.Flag {
	command := sidecarCommand()
	if role == "server" {
		command = serverCommand()
	}
	flags := map[string]cli.Flag{}
	for _, f := range command.Flags {
		if f.Names()[0] != "config" {
			flags[f.Names()[0]] = f
		}
	}
	return flags
}

// nearest proposes the setting that may have been meant: one with the same letters but for case, dashes and dots.
func nearest(name string, flags map[string]cli.Flag) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(s))
	}
	for known := range flags {
		if plain(known) == plain(name) {
			return fmt.Sprintf("; %s is meant, perhaps", known)
		}
	}
	return "; `promptspool config print` lists all"
}
