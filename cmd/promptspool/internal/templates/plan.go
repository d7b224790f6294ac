package templates

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
)

// planned reads a folder and tells what publishing it would change, snippets before those who use them. The caller closes the client.
func planned(c *cli.Context, dir string, labels []string) ([]change, *client.Client, wire.Identity, error) {
	var id wire.Identity
	if form := config.Read(c).Text("output"); form != "table" && form != "json" { // before anything is done
		return nil, nil, id, config.WrongValue(c, "output", form, "is not one of table, json")
	}
	folder, err := openTemplates(c, dir)
	if err != nil {
		return nil, nil, id, err
	}
	defer folder.root.Close()
	if len(folder.files) == 0 {
		return nil, nil, id, fmt.Errorf("there is no %s file in %s; `promptspool templates pull %s` writes the server's templates there", templateSuffix, dir, dir)
	}
	cl, id, err := config.Remote(c)
	if err != nil {
		return nil, nil, id, err
	}
	plan, err := folder.compare(c.Context, cl, id, labels)
	if err != nil {
		cl.Close()
		return nil, nil, id, err
	}
	return plan, cl, id, nil
}

// compare tells what publishing the folder would change.
func (f *templateFolder) compare(ctx context.Context, cl *client.Client, id wire.Identity, labels []string) ([]change, error) {
	active, err := listed(ctx, cl, id, "active")
	if err != nil {
		return nil, err
	}
	archived, err := listed(ctx, cl, id, "deleted")
	if err != nil {
		return nil, err
	}
	files, err := f.ordered(ctx, cl, id, labels)
	if err != nil {
		return nil, err
	}
	return changes(files, active, archived, labels), nil
}

// change is what a push of a template would do.
type change struct {
	file   *templateFile
	at     wire.TemplateListItem // what the server has; its zero value if nothing
	State  string                `json:"state"` // new, changed, restored, labelled or unchanged
	Name   string                `json:"prompt_name"`
	File   string                `json:"file"`
	Latest int                   `json:"latest"` // the newest version; 0 if there is none

	Warnings []wire.Finding `json:"warnings"` // what of it cannot be rendered
}

// changes compares files with what the server has.
func changes(files []*templateFile, active, archived map[string]wire.TemplateListItem, labels []string) []change {
	var all []change
	for _, f := range files {
		ch := change{file: f, Name: f.template.Name, File: f.path, State: "new", Warnings: f.findings}
		if ch.Warnings == nil {
			ch.Warnings = []wire.Finding{}
		}
		at, there := active[ch.Name]
		if !there {
			if at, there = archived[ch.Name]; there {
				ch.State = "restored"
			}
		} else {
			ch.State = compared(f.template, at, labels)
		}
		ch.at, ch.Latest = at, at.Version
		all = append(all, ch)
	}
	return all
}

func compared(t wire.Publish, at wire.TemplateListItem, labels []string) string {
	if !sameContent(t, wire.Publish{Blueprint: at.Blueprint, Metadata: at.Metadata}) || t.Tags != nil && !slices.Equal(t.Tags, at.Tags) {
		return "changed"
	}
	for _, label := range labels {
		if !slices.ContainsFunc(at.Labels, func(l wire.Label) bool { return l.Name == label && l.Version == at.Version }) {
			return "labelled"
		}
	}
	return "unchanged"
}

// texts are a template as the server has it and as the folder has it, in one form.
func (ch change) texts() (before, after string, err error) {
	write := func(t wire.Publish) string {
		text, failed := templateText(t, false)
		err = cmp.Or(err, failed)
		return string(text)
	}
	after = write(withTags(ch.file.template, ch.at.Tags))
	if ch.Latest > 0 && ch.State != "restored" {
		before = write(published(ch.at))
	}
	return before, after, err
}

// withTags is a template with the tags that it keeps where its file says nothing of them.
func withTags(t wire.Publish, tags []string) wire.Publish {
	if t.Tags == nil {
		t.Tags = tags
	}
	return t
}

// published is what a server has, as it was published.
func published(t wire.TemplateListItem) wire.Publish {
	return wire.Publish{Name: t.Name, Tags: t.Tags, Blueprint: t.Blueprint, Metadata: t.Metadata}
}
