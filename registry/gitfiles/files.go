// Package gitfiles reads and writes prompt templates as YAML files, which can be kept in
// Git.
//
// A File is one template, a Folder all of a tree. Reading is strict: it reports every
// fault with its line. Writing chooses the most readable form that is read back to the
// same content.
//
// The package knows no server: the commands compare a Folder with one, and publish.
package gitfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/wire/yamlreader"
	"promptspool/registry/render"
)

const (
	// Suffix ends the names of files.
	Suffix = ".yaml"

	filesMax        = 10_000
	segmentBytesMax = 200 // of one part of a path; file systems allow 255
)

// Folder is a folder of templates. It is not safe for concurrent use.
//
// The file team/greet.yaml is the template team/greet, unless the file gives another
// name.
type Folder struct {
	root  *os.Root         // nothing outside of it is read or written
	files map[string]*File // by the name of the template
}

// Read reads all files of a folder and reports their faults together. It closes the root
// if it fails; otherwise the caller must close the Folder.
func Read(root *os.Root) (*Folder, error) {
	f := &Folder{root: root, files: map[string]*File{}}

	// A faulty file does not end the walk, so that all faults are reported together.
	var faults []error
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		// Such as .git, and what editors leave.
		case p != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir() && slices.Contains([]string{Suffix, ".yml"}, path.Ext(p)):
			faults = append(faults, f.read(p))
		}

		if len(f.files) > filesMax {
			return fmt.Errorf("%s holds more than %d templates; push its folders one by one",
				root.Name(), filesMax)
		}
		return nil
	})

	if err == nil {
		err = joinFaults(faults)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// joinFaults makes one error of the faults of all files; nil if there are none.
func joinFaults(faults []error) error {
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("files are wrong, so nothing was done:\n%w", err)
	}
	return nil
}

// read adds one file to the folder.
func (f *Folder) read(p string) error {
	content, err := f.root.ReadFile(p)
	if err != nil {
		return err
	}
	t, err := Parse(p, strings.TrimSuffix(p, path.Ext(p)), content)
	if err != nil {
		return err
	}

	if other := f.files[t.Template.Name]; other != nil {
		return fmt.Errorf("%s: the template %q is in %s as well; keep one of them", p, t.Template.Name, other.Path)
	}
	f.files[t.Template.Name] = t
	return nil
}

// File returns the file of a template, or nil if there is none.
func (f *Folder) File(name string) *File { return f.files[name] }

// Names returns the names of the templates in the folder, sorted.
func (f *Folder) Names() []string { return slices.Sorted(maps.Keys(f.files)) }

// Place returns the path of a template's file, also if there is none yet. named reports
// whether the file must give the template's name.
func (f *Folder) Place(t wire.TemplateListItem) (file string, named bool) {
	if old := f.files[t.Name]; old != nil {
		return old.Path, old.needsName()
	}
	return defaultPath(t)
}

// defaultPath returns where a template's file belongs.
//
// named reports that no path can express the template's name, so the file must give it.
func defaultPath(t wire.TemplateListItem) (file string, named bool) {
	// Not every file system can hold these, and hidden files are not read back.
	for part := range strings.SplitSeq(t.Name, "/") {
		reserved := part == "" || part[0] == '.' || strings.HasSuffix(part, ".")
		if reserved || len(part) > segmentBytesMax || strings.ContainsAny(part, `\:*?"<>|`) {
			return fmt.Sprintf("template-%d%s", t.ID, Suffix), true
		}
	}
	return t.Name + Suffix, false
}

// Write puts a file in its place, as a whole or not at all.
func (f *Folder) Write(file string, content []byte) error {
	if dir := path.Dir(file); dir != "." {
		if err := f.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}

	// An unchanged file keeps its time, so that editors need not load it again.
	if current, err := f.root.ReadFile(file); err == nil && bytes.Equal(current, content) {
		return nil
	}

	// Renaming is atomic: no reader sees half a file. Its name begins with a dot, so that
	// one left by a crash is not read as a template.
	half := path.Join(path.Dir(file), "."+path.Base(file)+".half")
	err := f.root.WriteFile(half, content, 0o644)
	if err == nil {
		err = f.root.Rename(half, file)
	}
	if err != nil {
		if gone := f.root.Remove(half); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// Resolve returns a snippet that the server has. An unknown one is wire.CodeInvalid.
type Resolve func(s render.Snippet) (render.ResolvedSnippet, error)

// PublishOrder returns the templates of the folder with every snippet before its users.
//
// It also checks that each snippet exists, in the folder or on the server, and notes in
// Findings what cannot be rendered. labels will point to what is published.
func (f *Folder) PublishOrder(labels []string, onServer Resolve) ([]*File, error) {
	// A snippet by version, or by a label that this push does not move, means what the
	// server has.
	inFolder := func(s render.Snippet) *File {
		if s.Version > 0 || s.Label != "" && !slices.Contains(labels, s.Label) {
			return nil
		}
		return f.files[s.Name]
	}

	resolve := func(s render.Snippet) (render.ResolvedSnippet, error) {
		if t := inFolder(s); t != nil {
			return render.ResolvedSnippet{Name: s.Name, Blueprint: t.Template.Blueprint}, nil
		}
		return onServer(s)
	}

	// Depth first: a snippet comes before its users, also through other snippets. A file
	// is marked before its snippets are visited, or a cycle would never end.
	var order []*File
	visited := map[*File]bool{}
	var visit func(t *File)
	visit = func(t *File) {
		if visited[t] {
			return
		}
		visited[t] = true
		for _, s := range render.Snippets(t.Template.Blueprint) {
			if snippet := inFolder(s); snippet != nil {
				visit(snippet)
			}
		}
		order = append(order, t)
	}

	// In the order of names, so that the same folder is always published in the same
	// order.
	var faults []error
	for _, name := range f.Names() {
		t := f.files[name]
		expanded, err := render.Expand(name, t.Template.Blueprint, resolve)
		t.Findings = expanded.Findings(t.Template.Metadata)
		switch {
		case wire.IsCode(err, wire.CodeInvalid):
			faults = append(faults, t.LocateErrors(err))
		case err != nil:
			return nil, err
		}
		visit(t)
	}
	return order, joinFaults(faults)
}

// fileBytesMax bounds the size of a file.
const fileBytesMax = 1 << 20

// File is a template in a file: its newest version and its tags.
type File struct {
	Path     string // within the folder, with slashes
	Template wire.Publish
	Findings []wire.Finding // what cannot be rendered; set by Folder.PublishOrder

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
	t := &File{Path: file, lines: p.lines, scalars: p.scalars}
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

// Locate formats a finding with its place: FILE:LINE:COLUMN: FIELD MESSAGE. That is where the text
// begins or, of a block (|), the line in it; the message says where in the text.
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

	line, column := f.scalars[field].Line, f.scalars[field].Column
	if f.scalars[field].Style&yaml.LiteralStyle != 0 {
		line, column = line+finding.Line, 1
	}
	return fmt.Sprintf("%s:%d:%d: %s, in line %d, column %d of its text, %s",
		f.Path, line, column, field, finding.Line, finding.Column, finding.Message)
}

// needsName reports whether a file must give the template's name, because its path does
// not.
func (f *File) needsName() bool {
	return f.Template.Name != strings.TrimSuffix(f.Path, path.Ext(f.Path))
}

// The objects that a file may hold. Content blocks, parameters and tools are as the API
// takes them.
var (
	fileMembers      = []string{"name", "tags", "model", "metadata", "prompt_template"}
	blueprintMembers = []string{
		"type", "messages", "content", "template_format", "input_variables", "tools", "functions",
		"tool_choice", "function_call",
	}
	messageMembers = []string{
		"role", "content", "name", "template_format", "input_variables", "tool_calls", "tool_call_id",
		"function_call", "raw_request_display_role",
	}
	modelMembers = []string{
		"provider", "name", "parameters", "api_type", "base_model", "model_config_display_name",
		"display_params",
	}
)

// yamlFault matches the beginning of the YAML library's errors. Some have no line.
var yamlFault = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// fileParser turns a file into the JSON body that publishes it.
type fileParser struct {
	yamlreader.Reader
	lines     map[string]int
	scalars   map[string]*yaml.Node
	parts     map[string]json.RawMessage // fileMembers
	blueprint []string                   // members of the blueprint, as JSON, in their order
}

func newFileParser(path string) *fileParser {
	return &fileParser{
		Reader:  yamlreader.Reader{Path: path},
		lines:   map[string]int{"": 1},
		scalars: map[string]*yaml.Node{},
		parts:   map[string]json.RawMessage{},
	}
}

// parse returns the body of the publish request, or all faults of the file's form.
func (p *fileParser) parse(name string, content []byte) ([]byte, error) {
	if len(content) > fileBytesMax {
		return nil, fmt.Errorf("%s: is larger than %d bytes", p.Path, fileBytesMax)
	}

	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:%s", p.Path, yamlFault.ReplaceAllString(err.Error(), "$1: is not YAML: "))
	}
	if decoder.Decode(new(yaml.Node)) != io.EOF {
		p.Fault(1, "there is more than one document, or something that is not YAML after the first; keep one")
	}

	if len(document.Content) == 1 {
		p.root(document.Content[0])
	}
	p.checkWhole()
	if len(p.Faults) > 0 {
		return nil, errors.Join(p.Faults...)
	}
	return p.body(name), nil
}

// root reads the settings at the top of the file.
func (p *fileParser) root(node *yaml.Node) {
	p.Members(node, "the file", func(key, value *yaml.Node) {
		switch {
		case slices.Contains(blueprintMembers, key.Value):
			if raw := p.value(key.Value, value); raw != nil {
				member := string(jsonscan.AppendString(nil, key.Value)) + ":" + string(raw)
				p.blueprint = append(p.blueprint, member)
			}
		case slices.Contains(fileMembers, key.Value):
			p.parts[key.Value] = p.value(key.Value, value)
		default:
			known := append(slices.Clone(fileMembers), blueprintMembers...)
			p.Fault(key.Line, "there is no setting %q of a template; there are: %s",
				key.Value, strings.Join(known, ", "))
		}
	})
}

// checkWhole checks the settings against each other.
func (p *fileParser) checkWhole() {
	switch {
	case p.parts["prompt_template"] != nil && p.blueprint != nil:
		p.Fault(p.lines["prompt_template"],
			"prompt_template is the whole prompt; remove the prompt's other settings")
	case p.parts["prompt_template"] == nil && p.blueprint == nil && len(p.Faults) == 0:
		p.Fault(1, "there is no prompt: give messages (of a chat) or content (of a completion)")
	}

	_, inMetadata := jsonscan.Lookup(orObject(p.parts["metadata"]), "model")
	if inMetadata && p.parts["model"] != nil {
		p.Fault(p.lines["metadata.model"], "model is given twice")
	}
}

// body returns the file as the body of the publish request.
func (p *fileParser) body(name string) []byte {
	blueprint := p.parts["prompt_template"]
	if blueprint == nil {
		blueprint = json.RawMessage("{" + strings.Join(p.blueprint, ",") + "}")
	}

	metadata := p.parts["metadata"]
	if model := p.parts["model"]; model != nil {
		metadata = orObject(metadata)
		rest := strings.TrimPrefix(string(metadata), "{")
		if rest != "}" {
			rest = "," + rest
		}
		metadata = json.RawMessage(`{"model":` + string(model) + rest)
	}

	quotedName := p.parts["name"]
	if quotedName == nil {
		quotedName = jsonscan.AppendString(nil, name)
	}

	return fmt.Appendf(nil, `{"prompt_template":{"prompt_name":%s,"tags":%s},`+
		`"prompt_version":{"prompt_template":%s,"metadata":%s}}`,
		quotedName, orNull(p.parts["tags"]), blueprint, orNull(metadata))
}

// orObject returns raw if it is an object, otherwise an empty object.
func orObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return json.RawMessage("{}")
	}
	return raw
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// unknownMember returns why the object at a path cannot hold a member; "" if it can.
func unknownMember(path, member string) string {
	var allowed []string
	isMessage := strings.HasPrefix(path, "messages[") && strings.HasSuffix(path, "]") &&
		strings.Count(path, "[") == 1
	switch {
	case path == "model", path == "metadata.model":
		allowed = modelMembers
	case isMessage:
		allowed = messageMembers
	}

	if allowed == nil || slices.Contains(allowed, member) {
		return ""
	}
	return "there are: " + strings.Join(allowed, ", ")
}
