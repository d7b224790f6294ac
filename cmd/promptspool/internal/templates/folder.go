package templates

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/registry/render"
)

const (
	templateSuffix   = ".yaml"
	templateFilesMax = 10_000
	segmentBytesMax  = 200 // of one part of a path; file systems allow 255
)

// templateFolder is a folder of templates, by name.
//
// The file team/greet.yaml is the template team/greet, unless the file gives another name.
type templateFolder struct {
	root  *os.Root // nothing outside of it is read or written
	files map[string]*templateFile
}

// openTemplates reads a folder and reports the faults of all its files together.
//
// The caller closes the root.
func openTemplates(c *cli.Context, dir string) (*templateFolder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, config.Usagef(c, "the folder of templates: %v", err)
	}

	f := &templateFolder{root: root, files: map[string]*templateFile{}}
	var faults []error
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != "." && strings.HasPrefix(d.Name(), "."): // .git, and what editors leave
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir() && slices.Contains([]string{templateSuffix, ".yml"}, path.Ext(p)):
			faults = append(faults, f.read(p))
		}

		if len(f.files) > templateFilesMax {
			return fmt.Errorf("%s holds more than %d templates; push its folders one by one", dir, templateFilesMax)
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

// joinFaults makes one error of the faults of all files; nil if there are none.
func joinFaults(faults []error) error {
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("files are wrong, so nothing was done:\n%w", err)
	}
	return nil
}

// read adds one file to the folder.
func (f *templateFolder) read(p string) error {
	content, err := f.root.ReadFile(p)
	if err != nil {
		return err
	}
	t, err := parseTemplate(p, strings.TrimSuffix(p, path.Ext(p)), content)
	if err != nil {
		return err
	}

	if other := f.files[t.template.Name]; other != nil {
		return fmt.Errorf("%s: the template %q is in %s as well; keep one of them", p, t.template.Name, other.path)
	}
	f.files[t.template.Name] = t
	return nil
}

// names returns the names of the templates in the folder, sorted.
func (f *templateFolder) names() []string {
	var names []string
	for name := range f.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// defaultPath returns where a template's file belongs.
//
// named reports that no path can express the template's name, so the file must give it.
func defaultPath(t wire.TemplateListItem) (file string, named bool) {
	for part := range strings.SplitSeq(t.Name, "/") {
		reserved := part == "" || part[0] == '.' || strings.HasSuffix(part, ".")
		if reserved || len(part) > segmentBytesMax || strings.ContainsAny(part, `\:*?"<>|`) {
			return fmt.Sprintf("template-%d%s", t.ID, templateSuffix), true
		}
	}
	return t.Name + templateSuffix, false
}

// serverTemplates returns the templates of a server with this status, by name.
func serverTemplates(
	ctx context.Context, cl *client.Client, id wire.Identity, status string,
) (map[string]wire.TemplateListItem, error) {
	const perPage = 200

	all := map[string]wire.TemplateListItem{}
	for page := 1; ; page++ {
		list, err := cl.List(ctx, id, wire.TemplateListQuery{Page: page, PerPage: perPage, Status: status})
		if err != nil {
			return nil, err
		}

		for _, t := range list.Items {
			if len(t.Metadata) == 0 {
				t.Metadata = []byte("null")
			}
			all[t.Name] = t
		}
		if len(list.Items) < perPage {
			return all, nil
		}
	}
}

// publishOrder returns the templates of the folder with every snippet before its users.
//
// It also checks that each snippet exists, in the folder or on the server, and notes what
// cannot be rendered. labels will point to what is published.
func (f *templateFolder) publishOrder(
	ctx context.Context, cl *client.Client, id wire.Identity, labels []string,
) ([]*templateFile, error) {
	// A snippet by version, or by a label that this push does not move, means what the server has.
	inFolder := func(s render.Snippet) *templateFile {
		if s.Version > 0 || s.Label != "" && !slices.Contains(labels, s.Label) {
			return nil
		}
		return f.files[s.Name]
	}

	onServer := serverSnippets(ctx, cl, id)
	resolve := func(s render.Snippet) (render.ResolvedSnippet, error) {
		if t := inFolder(s); t != nil {
			return render.ResolvedSnippet{Name: s.Name, Blueprint: t.template.Blueprint}, nil
		}
		return onServer(s)
	}

	var order []*templateFile
	visited := map[*templateFile]bool{}
	var visit func(t *templateFile)
	visit = func(t *templateFile) {
		if visited[t] {
			return
		}
		visited[t] = true
		for _, s := range render.Snippets(t.template.Blueprint) {
			if snippet := inFolder(s); snippet != nil {
				visit(snippet)
			}
		}
		order = append(order, t)
	}

	var faults []error
	for _, name := range f.names() {
		t := f.files[name]
		expanded, err := render.Expand(name, t.template.Blueprint, resolve)
		t.findings = expanded.Findings(t.template.Metadata)
		switch {
		case wire.IsCode(err, wire.CodeInvalid):
			faults = append(faults, t.locateErrors(err))
		case err != nil:
			return nil, err
		}
		visit(t)
	}
	return order, joinFaults(faults)
}
