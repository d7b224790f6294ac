package templates

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/registry/gitfiles"
)

// makePlan reads a folder and returns what publishing it would change, every snippet
// before its users.
func makePlan(c *cli.Context, dir string, labels []string) ([]change, *client.Client, wire.Identity, error) {
	folder, err := openFolder(c, dir)
	if err != nil {
		return nil, nil, wire.Identity{}, err
	}
	defer folder.Close()
	if len(folder.Names()) == 0 {
		return nil, nil, wire.Identity{}, fmt.Errorf("there is no %s file in %s; "+
			"`promptspool templates pull %s` writes the server's templates there", gitfiles.Suffix, dir, dir)
	}

	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return nil, nil, id, err
	}
	plan, err := compare(c.Context, folder, cl, id, labels)
	return plan, cl, id, err
}

// openFolder reads a folder of templates.
func openFolder(c *cli.Context, dir string) (*gitfiles.Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, config.Usagef(c, "the folder of templates: %v", err)
	}

	return gitfiles.Read(root)
}

// serverTemplates returns the templates of a server with this status, by name.
func serverTemplates(
	ctx context.Context, cl *client.Client, id wire.Identity, status string,
) (map[string]wire.TemplateListItem, error) {
	const perPage = 200

	all := map[string]wire.TemplateListItem{}
	for page := 1; ; page++ {
		// Templates that are published meanwhile may be missed, as if push had run before
		// them.
		list, err := cl.List(ctx, id, wire.TemplateListQuery{Page: page, PerPage: perPage, Status: status})
		if err != nil {
			return nil, err
		}

		for _, t := range list.Items {
			if len(t.Metadata) == 0 {
				// A file always has the member, and comparing must not see a difference
				// in that.
				t.Metadata = []byte("null")
			}
			all[t.Name] = t
		}
		if len(list.Items) < perPage {
			return all, nil
		}
	}
}

// compare returns what publishing the folder would change on the server.
func compare(
	ctx context.Context, folder *gitfiles.Folder, cl *client.Client, id wire.Identity, labels []string,
) ([]change, error) {
	active, err := serverTemplates(ctx, cl, id, "active")
	if err != nil {
		return nil, err
	}
	archived, err := serverTemplates(ctx, cl, id, "deleted")
	if err != nil {
		return nil, err
	}

	// After the lists: what is neither in the folder nor there is an error of one file.
	files, err := folder.PublishOrder(labels, serverSnippets(ctx, cl, id))
	if err != nil {
		return nil, err
	}
	return changes(files, active, archived, labels), nil
}

// change is what a push of one template would do.
type change struct {
	file   *gitfiles.File
	server wire.TemplateListItem // what the server has; the zero value if nothing
	State  string                `json:"state"` // new, changed, restored, labelled or unchanged
	Name   string                `json:"prompt_name"`
	File   string                `json:"file"`
	Latest int                   `json:"latest"` // the newest version; 0 if there is none

	Warnings []wire.Finding `json:"warnings"` // what cannot be rendered
}

// changes compares files with what the server has.
func changes(
	files []*gitfiles.File, active, archived map[string]wire.TemplateListItem, labels []string,
) []change {
	var all []change
	for _, f := range files {
		ch := change{
			file:     f,
			Name:     f.Template.Name,
			File:     f.Path,
			State:    "new",
			Warnings: f.Findings,
		}
		if ch.Warnings == nil {
			// [] in JSON, not null.
			ch.Warnings = []wire.Finding{}
		}

		if item, ok := active[ch.Name]; ok {
			ch.server, ch.State = item, templateState(f.Template, item, labels)
		} else if item, ok := archived[ch.Name]; ok {
			ch.server, ch.State = item, "restored"
		}
		ch.Latest = ch.server.Version
		all = append(all, ch)
	}
	return all
}

// templateState returns what a push would do to a template that is in use on the server.
func templateState(t wire.Publish, server wire.TemplateListItem, labels []string) string {
	// A file without tags leaves those of the server alone.
	if !gitfiles.SameContent(t, published(server)) || t.Tags != nil && !slices.Equal(t.Tags, server.Tags) {
		return "changed"
	}

	for _, label := range labels {
		onLatest := func(l wire.Label) bool { return l.Name == label && l.Version == server.Version }
		if !slices.ContainsFunc(server.Labels, onLatest) {
			return "labelled"
		}
	}
	return "unchanged"
}

// texts returns a template as the server has it and as the folder has it, in the same
// form.
func (ch change) texts() (before, after string, err error) {
	write := func(t wire.Publish) string {
		text, failed := gitfiles.Text(t, false)
		err = cmp.Or(err, failed)
		return string(text)
	}

	// Both by the same writer: what differs is content, never form.
	after = write(withTags(ch.file.Template, ch.server.Tags))
	if ch.Latest > 0 && ch.State != "restored" {
		before = write(published(ch.server))
	}
	return before, after, err
}

// withTags returns a template with the tags that it keeps if its file has no setting for
// them.
func withTags(t wire.Publish, tags []string) wire.Publish {
	if t.Tags == nil {
		t.Tags = tags
	}
	return t
}

// published returns a template of the server in the form in which it was published.
func published(t wire.TemplateListItem) wire.Publish {
	return wire.Publish{
		PublishedName:    wire.PublishedName{Name: t.Name, Tags: t.Tags},
		PublishedVersion: wire.PublishedVersion{Blueprint: t.Blueprint, Metadata: t.Metadata},
	}
}
