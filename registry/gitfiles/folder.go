package gitfiles

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"promptspool/api/wire"
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
