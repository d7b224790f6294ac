package completion

import (
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/dashboard/docs"
	"promptspool/api/filterline"
	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/requests"
)

// valuesMax bounds how many values a server is asked for.
const valuesMax = 100

// ofFlag offers values of a flag.
func ofFlag(c *cli.Context, f cli.Flag, word string) []offer {
	usage, name := f.(cli.DocGenerationFlag).GetUsage(), f.Names()[0]
	key, value, hasKey := strings.Cut(word, "=")

	switch {
	case config.Words(f) != nil:
		return plain(config.Words(f), "")
	case strings.Contains(usage, "`file`"), strings.Contains(usage, "`folder`"):
		return files
	case name == "context":
		return contexts()
	case name == "template", name == "label":
		return ofTemplates(c, name)
	case name == "filter":
		return ofLine(c, word)
	case name == "metadata" && hasKey:
		return plain(existing(c, filterline.TypingAt("metadata."+key+":"+value)), key+"=")
	case name == "metadata":
		var keys []offer
		for _, key := range existing(c, filterline.TypingAt("metadata."+word)) {
			keys = append(keys, offer{text: key + "="})
		}
		return keys
	case f.(cli.CategorizableFlag).GetCategory() == filterGroup:
		return plain(existing(c, filterline.TypingAt(name+":"+word)), "")
	}
	return nil
}

// filterGroup is the flags whose names are those of fields of a filter line.
const filterGroup = "Filter"

// plain offers words without notes.
func plain(words []string, lead string) (all []offer) {
	for _, word := range words {
		all = append(all, offer{text: lead + word})
	}
	return all
}

// ofLine offers what continues a filter line.
func ofLine(c *cli.Context, line string) (all []offer) {
	t := filterline.TypingAt(line)
	for _, value := range existing(c, t) {
		text := t.CompletedValue(value)
		if !t.Value {
			text = t.Field.CompletedPart(value)
		}
		all = append(all, offer{text: t.Kept + text})
	}
	if t.Value || t.Field != nil || t.IsText() {
		return all
	}
	for _, f := range t.Keys(false) {
		all = append(all, offer{t.Kept + f.Completed(), f.Help})
	}
	return all
}

// existing returns values of the field that is typed, or what may follow its dot, as the server has them.
func existing(c *cli.Context, t filterline.Typing) []string {
	if t.Field == nil || t.IsText() {
		return nil
	}
	q := wire.SuggestQuery{Field: t.Field.PartField(), Prefix: t.Prefix, Limit: valuesMax, Budget: patience}
	if t.Value {
		q.Field, q.Key = t.Field.JSON, t.Part
		if words := t.Words(); len(words) > 0 {
			return words
		}
	}

	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return nil
	}
	found, _ := cl.Suggest(c.Context, id, q)
	return found.Values
}

// ofArgument offers what may be the next argument of a command, by what the command calls it.
func ofArgument(c *cli.Context) []offer {
	names := strings.Fields(c.Command.ArgsUsage)
	if len(names) == 0 {
		return nil
	}

	switch name := strings.Trim(names[min(c.NArg(), len(names)-1)], "[],."); name {
	case "FILE", "DIR":
		return files
	case "SHELL":
		return plain(shells, "")
	case "PAGE":
		return plain(docs.Names(), "")
	case "KEY_ID":
		return beside(c, "/keys", "id")
	case "EMAIL":
		return beside(c, "/people", "email")
	case "REQUEST_ID":
		return ofServer(c, requests.Recent)
	case "TRACE_ID", "SESSION_ID":
		of := strings.ToLower(strings.TrimSuffix(name, "_ID")) + "s"
		return ofServer(c, func(c *cli.Context, cl *client.Client, id wire.Identity) (ids []string, err error) {
			page, err := cl.Rollups(c.Context, id, wire.RollupSearch{Of: of, PerPage: valuesMax})
			for _, r := range page.Items {
				ids = append(ids, r.ID)
			}
			return ids, err
		})
	case "NAME":
		switch {
		case strings.Contains(c.Command.HelpName, " projects "):
			return beside(c, "/projects", "name")
		case strings.Contains(c.Command.HelpName, " contexts "):
			return contexts()
		}
		return ofTemplates(c, "template")
	case "LABEL", "A", "B":
		return ofTemplates(c, "label")
	}
	return nil
}

// contexts offers the servers that login keeps.
func contexts() []offer {
	all, _ := config.ReadContexts()
	return plain(all.Names(), "")
}

// ofServer offers what the server that the command would ask has.
func ofServer(
	c *cli.Context, find func(*cli.Context, *client.Client, wire.Identity) ([]string, error),
) []offer {
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return nil
	}
	found, _ := find(c, cl, id)
	return plain(found, "")
}

// ofTemplates offers the names of templates, or their labels.
func ofTemplates(c *cli.Context, what string) (all []offer) {
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return nil
	}
	list, _ := cl.List(c.Context, id, wire.TemplateListQuery{Page: 1, PerPage: wire.PageItemsMax})
	seen := map[string]bool{}
	for _, t := range list.Items {
		if what == "template" {
			all = append(all, offer{text: t.Name})
		}
		for _, l := range t.Labels {
			if what == "label" && !seen[l.Name] {
				seen[l.Name] = true
				all = append(all, offer{text: l.Name})
			}
		}
	}
	return all
}

// beside offers a member of what the server beside has, over its control socket.
func beside(c *cli.Context, path, member string) (all []offer) {
	data, err := config.RoleData(c, "server")
	if err != nil {
		return nil
	}
	var list struct {
		Items []map[string]any `json:"items"`
	}
	_ = ops.Control(c.Context, data, "GET", path, nil, &list)
	for _, item := range list.Items {
		if text, ok := item[member].(string); ok {
			note, _ := item["name"].(string)
			all = append(all, offer{text, note})
		}
	}
	return all
}
