package templates

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/registry/gitfiles"
)

// pushed is one template that push published.
type pushed struct {
	change
	Version int `json:"version"`
}

func pushTemplates(c *cli.Context, dir string) error {
	message, labels := config.Read(c).Text("message"), config.Read(c).List("label")
	if utf8.RuneCountInString(message) > wire.CommitMessageRunesMax {
		return config.WrongValue(c, "message", message,
			"is longer than "+strconv.Itoa(wire.CommitMessageRunesMax)+" characters")
	}

	plan, cl, id, err := makePlan(c, dir, labels)
	if err != nil {
		return err
	}
	if lines := planFindings(plan); c.Bool("force") {
		printWarnings(c.App.ErrWriter, lines)
	} else if len(lines) > 0 {
		return errUnrenderable("templates cannot be rendered, so nothing was published", lines)
	}

	if c.Bool("dry-run") {
		_, err := showPlan(c, plan)
		return err
	}

	// Versions published before an error are printed too: they are on the server.
	done, failed := publishPlan(c, cl, id, plan, wire.Publish{
		PublishedVersion: wire.PublishedVersion{CommitMessage: message},
		PublishedPlace:   wire.PublishedPlace{Labels: labels},
	})
	err = print.Output(c, done, func(t *print.Table) {
		if len(done) > 0 {
			t.Head("STATE", "NAME", ">VERSION")
		}
		for _, d := range done {
			t.Row(print.Styled(d.State, stateStyles[d.State]), d.Name, d.Version)
		}
		if failed == nil {
			t.Row(summary(plan, "published"))
		}
	})
	return errors.Join(err, failed)
}

// summary says how many templates of a plan were published, or would be, and how many only labelled.
func summary(plan []change, published string) string {
	count := map[string]int{}
	for _, ch := range plan {
		count[ch.State]++
	}

	labelled := count["labelled"]
	text := fmt.Sprintf("%d of %d templates %s", len(plan)-count["unchanged"]-labelled, len(plan), published)
	if labelled > 0 {
		text += fmt.Sprintf(", %d labelled", labelled)
	}
	return text + "."
}

// publishPlan publishes the changes of a plan in order, with the message and labels of
// common.
//
// It stops at the first error, and returns what it published before.
func publishPlan(
	c *cli.Context, cl *client.Client, id wire.Identity, plan []change, common wire.Publish,
) ([]pushed, error) {
	done := []pushed{}
	for _, ch := range plan {
		// A version that says nothing new would move latest for nothing.
		if ch.State == "unchanged" {
			continue
		}

		// A copy: the folder's own template has no message.
		t := ch.file.Template
		t.CommitMessage, t.Labels = common.CommitMessage, common.Labels
		result, err := cl.Publish(c.Context, id, t)
		if err != nil {
			return done, fmt.Errorf("%w\nThe templates listed above are published. Run it again to continue",
				ch.file.LocateErrors(err))
		}

		// The server may find what this program does not.
		if len(ch.Warnings) == 0 {
			for _, f := range result.Warnings {
				printWarnings(c.App.ErrWriter, []string{ch.file.Locate(f)})
			}
		}
		done = append(done, pushed{ch, result.VersionNumber})
	}
	return done, nil
}

// stateStyles are how the states of changes are shown.
var stateStyles = map[string]print.Style{
	"new": print.Green, "restored": print.Green, "changed": print.Yellow, "labelled": print.Yellow,
}

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
