package templates

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// templateBytesMax bounds a file that holds a template.
const templateBytesMax = 1 << 20

// templateFile is a template in a file: its newest version and its tags.
type templateFile struct {
	path     string // within the folder, with slashes
	template wire.Publish
	content  []byte
	lines    map[string]int        // of every value, by its path
	scalars  map[string]*yaml.Node // by their path
	findings []wire.Finding        // what cannot be rendered
}

// parseTemplate reads a file strictly, and reports everything that is wrong with it, with line numbers.
//
// name is the template's name unless the file gives another.
func parseTemplate(path, name string, content []byte) (*templateFile, error) {
	p := newTemplateParser(path)
	body, err := p.parse(name, content)
	if err != nil {
		return nil, err
	}

	// The API's own decoder checks the fields, as if the file had been sent.
	file := &templateFile{path: path, content: content, lines: p.lines, scalars: p.scalars}
	o, err := wire.ParseObject(body)
	if err == nil {
		file.template, err = wire.DecodePublish(o)
	}
	if err != nil {
		return nil, file.locateErrors(err)
	}

	blueprint, faults := render.Check(file.template.Blueprint)
	for _, f := range render.CheckMetadata(file.template.Metadata) {
		field := strings.TrimSuffix("metadata."+f.Field, ".")
		faults = append(faults, wire.FieldError{Field: field, Reason: f.Reason})
	}
	if len(faults) > 0 {
		return nil, file.locateErrors(wire.Invalid(faults...))
	}

	file.template.Blueprint = blueprint
	if file.template.Metadata == nil {
		file.template.Metadata = json.RawMessage("null")
	}
	return file, nil
}

// locateErrors adds the file's name and lines to the errors of an API call about the template.
func (f *templateFile) locateErrors(err error) error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if len(e.Fields) == 0 {
		return fmt.Errorf("%s: %s", f.path, e.Message)
	}

	var faults []error
	for _, fault := range e.Fields {
		field := f.fileField(fault.Field)
		text := strings.TrimSpace(field + " " + fault.Reason)
		faults = append(faults, fmt.Errorf("%s:%d: %s", f.path, f.line(field), text))
	}
	return errors.Join(faults...)
}

// fileField returns the name that a field of the publish call has in the file.
func (f *templateFile) fileField(field string) string {
	field = strings.TrimPrefix(field, "prompt_version.")
	if field == "prompt_template.prompt_name" {
		field = "name"
	}
	if field == "prompt_template" && f.lines[field] == 0 {
		field = ""
	}

	// A file may give the members of these objects at its top.
	for _, prefix := range []string{"metadata.", "prompt_template."} {
		if trimmed, ok := strings.CutPrefix(field, prefix); ok && f.lines[field] == 0 {
			field = trimmed
		}
	}
	return field
}

// line returns the line of a value, or of the nearest value around it that is in the file.
func (f *templateFile) line(field string) int {
	for field != "" {
		if line := f.lines[field]; line > 0 {
			return line
		}
		field = parentPath(field)
	}
	return 1
}

// parentPath returns the path of the value that holds the one at path; "" at the top.
func parentPath(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}
