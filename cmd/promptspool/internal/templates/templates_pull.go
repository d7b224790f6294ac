package templates

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/registry/gitfiles"
)

// pulled is one template of the server, and what pull did with its file.
type pulled struct {
	State   string `json:"state"` // written or unchanged
	Name    string `json:"prompt_name"`
	Version int    `json:"version"`
	File    string `json:"file"`
}

func pullTemplates(c *cli.Context) error {
	v := config.Read(c)
	dir := v.Argument("the folder of templates")
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	active, err := serverTemplates(c.Context, cl, id, "active")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}

	// A folder with a faulty file is not written to: a person may be editing it.
	folder, err := openFolder(c, dir)
	if err != nil {
		return err
	}
	defer folder.Close()

	rows, err := pull(folder, active)
	if err != nil {
		return err
	}
	written := slices.DeleteFunc(slices.Clone(rows), func(r pulled) bool { return r.State == "unchanged" })
	err = print.Output(c, rows, func(t *print.Table) {
		if len(written) > 0 {
			t.Head("FILE", "NAME", ">VERSION")
		}
		for _, r := range written {
			t.Row(r.File, r.Name, r.Version)
		}
		t.Row(fmt.Sprintf("%d of %s written.", len(written), print.Quantity(len(rows), "template")))
	})
	if err != nil || v.AsData() {
		return err
	}

	for _, name := range folder.Names() {
		// It may be new and not pushed yet, so it is never deleted.
		if _, ok := active[name]; !ok {
			fmt.Fprintf(c.App.ErrWriter, "%s is not on the server; it was left as it is.\n",
				print.Printable(folder.File(name).Path))
		}
	}
	return nil
}

// pull writes the templates whose files differ from the server's.
func pull(folder *gitfiles.Folder, active map[string]wire.TemplateListItem) ([]pulled, error) {
	rows := []pulled{}
	for _, name := range slices.Sorted(maps.Keys(active)) {
		t, old := active[name], folder.File(name)
		// Where the template's file is, or would be. Its name is in the file only if the
		// path cannot say it.
		file, named := folder.Place(t)

		row := pulled{"unchanged", name, t.Version, file}
		// A file that says the same keeps its layout and its comments.
		if old == nil || templateState(old.Template, t, nil) != "unchanged" {
			row.State = "written"
			content, err := gitfiles.Text(published(t), named)
			if err == nil {
				err = folder.Write(file, content)
			}
			if err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}
