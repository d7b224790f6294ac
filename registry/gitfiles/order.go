package gitfiles

import (
	"slices"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

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
