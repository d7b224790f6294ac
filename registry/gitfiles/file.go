package gitfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// fileBytesMax bounds the size of a file.
const fileBytesMax = 1 << 20

// File is a template in a file: its newest version and its tags.
type File struct {
	Path     string // within the folder, with slashes
	Template wire.Publish
	Findings []wire.Finding // what cannot be rendered; set by Folder.PublishOrder

	content []byte
	lines   map[string]int        // of every value, by its path
	scalars map[string]*yaml.Node // by their path
}

// Parse reads a file strictly, and reports everything that is wrong with it, with line
// numbers.
//
// name is the template's name unless the file gives another.
func Parse(file, name string, content []byte) (*File, error) {
	p := newFileParser(file)
	body, err := p.parse(name, content)
	if err != nil {
		return nil, err
	}

	// The API's own decoder checks the fields, as if the file had been sent.
	t := &File{Path: file, content: content, lines: p.lines, scalars: p.scalars}
	o, err := wire.ParseObject(body)
	if err == nil {
		t.Template, err = wire.DecodePublish(o)
	}
	if err != nil {
		return nil, t.LocateErrors(err)
	}

	// The server checks these when it publishes; here they are found before anything is
	// sent.
	blueprint, faults := render.Check(t.Template.Blueprint)
	for _, f := range render.CheckMetadata(t.Template.Metadata) {
		field := strings.TrimSuffix("metadata."+f.Field, ".")
		faults = append(faults, wire.FieldError{Field: field, Reason: f.Reason})
	}
	if len(faults) > 0 {
		return nil, t.LocateErrors(wire.Invalid(faults...))
	}

	t.Template.Blueprint = blueprint
	if t.Template.Metadata == nil {
		t.Template.Metadata = json.RawMessage("null")
	}
	return t, nil
}

// LocateErrors adds the file's name and lines to the errors of a request about the
// template.
func (f *File) LocateErrors(err error) error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if len(e.Fields) == 0 {
		return fmt.Errorf("%s: %s", f.Path, e.Message)
	}

	var faults []error
	for _, fault := range e.Fields {
		field := f.fileField(fault.Field)
		text := strings.TrimSpace(field + " " + fault.Reason)
		faults = append(faults, fmt.Errorf("%s:%d: %s", f.Path, f.line(field), text))
	}
	return errors.Join(faults...)
}

// fileField returns the name that a field of the publish request has in the file.
func (f *File) fileField(field string) string {
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

// line returns the line of a value, or of the nearest value around it that is in the
// file.
func (f *File) line(field string) int {
	for field != "" {
		if line := f.lines[field]; line > 0 {
			return line
		}
		field = parentPath(field)
	}
	return 1
}

// parentPath returns the path of the value that holds the one at field; "" at the top.
func parentPath(field string) string {
	return field[:max(0, strings.LastIndexAny(field, ".["))]
}

// Locate formats a finding with its place in the file: FILE:LINE:COLUMN: FIELD MESSAGE.
func (f *File) Locate(finding wire.Finding) string {
	field := finding.Path
	if f.lines["prompt_template"] > 0 {
		field = "prompt_template." + field
	}

	// The file may have a plain text where the blueprint has a list with one block.
	for field != "" && f.scalars[field] == nil {
		field = parentPath(field)
	}
	if field == "" {
		return fmt.Sprintf("%s:%d:1: %s %s", f.Path, f.line(finding.Path), finding.Path, finding.Message)
	}

	line, column, exact := inScalar(f.content, f.scalars[field], finding.Line, finding.Column)
	if !exact {
		return fmt.Sprintf("%s:%d:%d: %s, in line %d, column %d of its text, %s",
			f.Path, line, column, field, finding.Line, finding.Column, finding.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s %s", f.Path, line, column, field, finding.Message)
}

// needsName reports whether a file must give the template's name, because its path does
// not.
func (f *File) needsName() bool {
	return f.Template.Name != strings.TrimSuffix(f.Path, path.Ext(f.Path))
}
