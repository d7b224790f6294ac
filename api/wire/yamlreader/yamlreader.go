// Package yamlreader reads YAML files strictly and reports every fault with its line.
package yamlreader

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Reader reads a file of settings strictly, and collects the faults, so that all are reported together.
type Reader struct {
	Path   string
	Faults []error
}

// Fault adds a fault of a line.
func (p *Reader) Fault(line int, format string, args ...any) {
	p.Faults = append(p.Faults, fmt.Errorf("%s:%d: %s", p.Path, line, fmt.Sprintf(format, args...)))
}

// Members walks a mapping, each key once. One that is empty is null, and has no members.
func (p *Reader) Members(node *yaml.Node, what string, each func(key, value *yaml.Node)) {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return
	}
	if node.Kind != yaml.MappingNode {
		p.Fault(node.Line, "%s must hold settings of the form name: value", what)
		return
	}

	// The library lets the last one win, which hides a slip.
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			p.Fault(key.Line, "a setting's name must be a word")
			continue
		}
		if before := seen[key.Value]; before > 0 {
			p.Fault(key.Line, "%s was set before, in line %d", key.Value, before)
			continue
		}

		seen[key.Value] = key.Line
		each(key, value)
	}
}
