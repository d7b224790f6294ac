package templates

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

func pullCommand() *cli.Command {
	return &cli.Command{
		Name: "pull", Usage: "write the newest version of every template into a folder; files that say the same stay as they are", ArgsUsage: "DIR",
		Flags:  config.RemoteFlags(),
		Action: pullTemplates,
	}
}

// pulled is a line of what pull did.
type pulled struct {
	State   string `json:"state"` // written or unchanged
	Name    string `json:"prompt_name"`
	Version int    `json:"version"`
	File    string `json:"file"`
}

func pullTemplates(c *cli.Context) error {
	v := config.Read(c)
	dir := v.Argument("the folder of templates")
	cl, id := v.Remote()
	if err := v.Err(); err != nil {
		return err
	}
	defer cl.Close()

	there, err := listed(c.Context, cl, id, "active")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	folder, err := openTemplates(c, dir) // a folder that cannot be read is not written over
	if err != nil {
		return err
	}
	defer folder.root.Close()
	rows, err := folder.pull(there)
	if err != nil {
		return err
	}
	if v.Text("output") == "json" {
		return print.JSON(c.App.Writer, rows)
	}
	written := slices.DeleteFunc(slices.Clone(rows), func(r pulled) bool { return r.State == "unchanged" })
	err = print.Output(c, rows, func(t *print.Table) {
		if len(written) > 0 {
			t.Row("FILE", "NAME", "VERSION")
		}
		for _, r := range written {
			t.Row(r.File, r.Name, r.Version)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "%d of %s written.\n", len(written), print.Quantity(len(rows), "template"))
	for _, name := range folder.names() {
		if _, ok := there[name]; !ok {
			fmt.Fprintf(c.App.ErrWriter, "%s is not on the server; it was left as it is.\n", print.Printable(folder.files[name].path))
		}
	}
	return nil
}

// pull writes what differs.
func (f *templateFolder) pull(there map[string]wire.TemplateListItem) ([]pulled, error) {
	rows := []pulled{}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		t := there[name]
		file, named := pathOf(t)
		old := f.files[name]
		if old != nil {
			file, named = old.path, f.isNamed(old)
		}
		row := pulled{"unchanged", name, t.Version, file}
		if old == nil || compared(withTags(old.template, nil), t, nil) != "unchanged" {
			row.State = "written"
			content, err := templateText(published(t), named)
			if err == nil {
				err = f.write(file, content)
			}
			if err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// isNamed says whether a file is not where its template's name would put it.
func (f *templateFolder) isNamed(t *templateFile) bool {
	return t.template.Name != t.path[:len(t.path)-len(path.Ext(t.path))]
}

// write puts a file in its place, whole or not at all.
func (f *templateFolder) write(file string, content []byte) error {
	if dir := path.Dir(file); dir != "." {
		if err := f.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if there, err := f.root.ReadFile(file); err == nil && bytes.Equal(there, content) {
		return nil
	}
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
