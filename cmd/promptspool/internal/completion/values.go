package completion

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/dashboard/docs"
	"promptspool/api/filterline"
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
		return plain(config.Words(f), "", "")
	case strings.Contains(usage, "`file`"), strings.Contains(usage, "`folder`"):
		return files
	case name == "context":
		return contexts()
	case name == "filter":
		return ofLine(c, word)
	case name == "metadata" && hasKey:
		return plain(existing(c, filterline.TypingAt("metadata."+key+":"+value)), key+"=", "")
	case name == "metadata":
		return plain(existing(c, filterline.TypingAt("metadata."+word)), "", "=")
	}
	// Flags of a filter are called as their fields of a line.
	t := filterline.TypingAt(name + ":" + word)
	if t.Field == filterline.OfMetadata() {
		return nil
	}
	return plain(existing(c, t), "", "")
}

// plain offers words between two texts, without notes.
func plain(words []string, before, after string) (all []offer) {
	for _, word := range words {
		all = append(all, offer{text: before + word + after})
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
	if t.Field == nil && !t.Value && !t.IsText() {
		for _, f := range t.Keys(false) {
			all = append(all, offer{t.Kept + f.Completed(), f.Help})
		}
	}
	return all
}

// existing returns values of the field that is typed, or what may follow its dot, as the server has them.
func existing(c *cli.Context, t filterline.Typing) []string {
	if t.Field == nil {
		return nil
	}
	q := wire.SuggestQuery{Field: t.Field.PartField(), Prefix: t.Prefix, Limit: valuesMax, Budget: patience}
	if t.Value {
		q.Field, q.Key = t.Field.JSON, t.Part
	}
	if words := t.Words(); t.Value && words != nil {
		return words
	}

	if !asksServer(c) {
		return nil
	}
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return nil
	}
	found, _ := cl.Suggest(c.Context, id, q)
	return found.Values
}

// asksServer reports whether a command asks a server that a context may name.
func asksServer(c *cli.Context) bool {
	return slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "context" })
}

// ofArgument offers what may be the next argument of a command, by what the command calls it.
func ofArgument(c *cli.Context, word string) []offer {
	names := strings.Fields(c.Command.ArgsUsage + " -")
	switch strings.Trim(names[min(c.NArg(), len(names)-1)], "[],.") {
	case "FILE", "DIR":
		return files
	case "SHELL":
		return plain(shells, "", "")
	case "PAGE":
		return plain(docs.Names(), "", "")
	case "LABEL", "A", "B":
		return plain(existing(c, filterline.TypingAt("label:"+word)), "", "")
	}

	if strings.Contains(c.Command.HelpName, " contexts ") {
		return contexts()
	}
	if !asksServer(c) {
		return nil
	}
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return nil
	}
	var found []string
	switch {
	case names[0] == "REQUEST_ID":
		found, _ = requests.Recent(c, cl, id)
	case names[0] == "NAME" && c.NArg() == 0:
		list, _ := cl.List(c.Context, id, wire.TemplateListQuery{Page: 1, PerPage: wire.PageItemsMax})
		for _, t := range list.Items {
			found = append(found, t.Name)
		}
	}
	return plain(found, "", "")
}

// contexts offers the servers that login keeps.
func contexts() []offer {
	all, _ := config.ReadContexts()
	return plain(all.Names(), "", "")
}
