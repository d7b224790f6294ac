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
	segmentBytesMax  = 200 // of a part of a path; file systems take 255
)

// templateFolder is a folder of templates, by name. The file team/greet.yaml is the template team/greet, unless it says name.
type templateFolder struct {
	root  *os.Root // nothing outside of it is read or written
	files map[string]*templateFile
}

// openTemplates reads a folder. All that is wrong in any of its files is told at once. The caller closes the root.
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
		case p != "." && strings.HasPrefix(d.Name(), "."): // .git, what editors leave
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
		err = wrongFiles(faults)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

// wrongFiles is one error of all that is wrong with files; nil if nothing is.
func wrongFiles(faults []error) error {
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("files are wrong, so nothing was done:\n%w", err)
	}
	return nil
}

// read reads one file.
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

// names are those of the templates in the folder, sorted.
func (f *templateFolder) names() []string {
	var names []string
	for name := range f.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// pathOf is where a template's file belongs. named says that its name is none that a path can tell.
func pathOf(t wire.TemplateListItem) (file string, named bool) {
	for part := range strings.SplitSeq(t.Name, "/") {
		if part == "" || len(part) > segmentBytesMax || part[0] == '.' || strings.HasSuffix(part, ".") || strings.ContainsAny(part, `\:*?"<>|`) {
			return fmt.Sprintf("template-%d%s", t.ID, templateSuffix), true
		}
	}
	return t.Name + templateSuffix, false
}

// listed are the templates of a server, by name.
func listed(ctx context.Context, cl *client.Client, id wire.Identity, status string) (map[string]wire.TemplateListItem, error) {
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

// ordered checks what the templates of the folder refer to, here or at the server, and puts snippets before those who use them.
// labels are those that will point to what is published.
func (f *templateFolder) ordered(ctx context.Context, cl *client.Client, id wire.Identity, labels []string) ([]*templateFile, error) {
	here := func(s render.Snippet) *templateFile {
		if s.Version > 0 || s.Label != "" && !slices.Contains(labels, s.Label) {
			return nil
		}
		return f.files[s.Name]
	}
	there := serverSnippets(ctx, cl, id)
	var order []*templateFile
	done := map[*templateFile]bool{}
	var faults []error
	var visit func(t *templateFile)
	visit = func(t *templateFile) {
		if done[t] {
			return
		}
		done[t] = true
		for _, s := range render.Snippets(t.template.Blueprint) {
			if before := here(s); before != nil {
				visit(before)
			}
		}
		order = append(order, t)
	}
	for _, name := range f.names() {
		t := f.files[name]
		expanded, err := render.Expand(name, t.template.Blueprint, func(s render.Snippet) (render.ResolvedSnippet, error) {
			if t := here(s); t != nil {
				return render.ResolvedSnippet{Name: s.Name, Blueprint: t.template.Blueprint}, nil
			}
			return there(s)
		})
		t.findings = expanded.Findings(t.template.Metadata)
		switch {
		case wire.IsCode(err, wire.CodeInvalid):
			faults = append(faults, t.refused(err))
		case err != nil:
			return nil, err
		}
		visit(t)
	}
	return order, wrongFiles(faults)
}
