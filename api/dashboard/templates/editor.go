package templates

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/calls"
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/markup"
	"promptspool/api/dashboard/textdiff"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// roles are the roles that a template's message can have.
var roles = []string{"system", "developer", "user", "assistant", "tool", "function", "placeholder"}

// editView is what the editor shows.
type editView struct {
	draft
	Head      templateHead // the zero value for a new template
	Preview   previewView
	Error     *wire.Error
	Refused   []shownFinding // why the draft was not saved: it cannot be rendered, or called with its tools
	Question  string         // asked before the draft is saved with a new label; see newLabel
	Overtaken int            // the draft's base, if another version was saved meanwhile; else 0
	Latest    int            // the number of that version
	Unsaved   bool           // the fields come from a form, not from a version
	Roles     []string
	Providers []string
}

func (p *pages) editPage(c *frame.Exchange) error {
	name := c.FormValue("name")
	if name == "" {
		return p.showEditor(c, http.StatusOK, editView{draft: newDraft("")})
	}

	head, err := p.head(c, "edit")
	if err != nil {
		return err
	}
	number, err := versionParam(c, "v", head.Latest())
	if err != nil {
		return err
	}
	raw, err := p.templates.Source(c.Context(), c.Identity(), head.Name, wire.Selector{Version: number})
	if err != nil {
		return err
	}

	v := editView{Head: head}
	v.draft, err = draftFrom(head.Template, raw)
	if err != nil {
		return err
	}
	v.Variables, err = p.newestVariables(c, head.Name)
	if err != nil {
		return err
	}

	return p.showEditor(c, http.StatusOK, v)
}

// newestVariables returns the variables of the template's newest request, for trying a
// draft with them, or "{}".
func (p *pages) newestVariables(c *frame.Exchange, name string) (string, error) {
	page, err := requestsOf(c, name, 0).List(c.Context(), p.records, c.Identity(), wire.Search{PerPage: 1})
	if err != nil || len(page.Items) == 0 {
		return "{}", err
	}

	r, err := p.records.Request(c.Context(), c.Identity(), page.Items[0].RequestID)
	switch {
	case wire.IsCode(err, wire.CodeNotFound):
		// Deleted since the search.
		return "{}", nil
	case err != nil:
		return "", err
	case r.Prompt == nil || len(r.Prompt.InputVariables) > editedBytesMax:
		// There are none, or they are too long to edit.
		return "{}", nil
	}

	return cmp.Or(markup.Indent(string(r.Prompt.InputVariables)), "{}"), nil
}

// editedBytesMax bounds variables that are offered for editing.
const editedBytesMax = 16 << 10

// requestsOf returns the filter for the requests of a template's version, or of all
// its versions if version is 0.
func requestsOf(c *frame.Exchange, name string, version int) filter.Filter {
	f := c.Filter(nil).With(filterline.Where("template", "", name))
	if version > 0 {
		f = f.With(filterline.Where("version", "", strconv.Itoa(version)))
	}

	return f
}

func (p *pages) showEditor(c *frame.Exchange, status int, v editView) error {
	title := v.Name + " · Edit"
	if v.New {
		title = "New template"
	}

	v.Roles, v.Providers = roles, p.providers
	v.Preview = p.renderDraft(c, v.draft)

	return c.Show(status, "edit", title, "templates", v)
}

// saveAnyway is the button that also saves what cannot be rendered.
const saveAnyway = "save-anyway"

// edit carries out a button of the editor: one that changes the form, or one that saves.
func (p *pages) edit(c *frame.Exchange) error {
	v := editView{draft: readDraft(c.PostForm), Unsaved: true}
	if !v.New {
		var err error
		v.Head, err = p.head(c, "edit")
		if err != nil {
			return err
		}
	}

	// Buttons that change the form send it as well: the editor works without scripts.
	button := c.PostForm.Get("do")
	if button != "save" && button != saveAnyway {
		v.apply(button)
		return p.showEditor(c, http.StatusOK, v)
	}

	saved, err := p.save(c, &v, button == saveAnyway)
	switch {
	case err != nil:
		return p.showNotSaved(c, v, err)
	case len(v.Refused) > 0 || v.Question != "":
		return p.showEditor(c, http.StatusUnprocessableEntity, v)
	}

	return redirectToSaved(c, v.draft, saved)
}

// save publishes the draft. If it cannot be rendered, it is only published if anyway is
// set; otherwise v.Refused explains why not. Before it gets a label that the project does not have,
// v.Question asks.
func (p *pages) save(c *frame.Exchange, v *editView, anyway bool) (wire.Published, error) {
	version, err := v.publish()
	if err != nil {
		return wire.Published{}, err
	}

	if !anyway {
		findings, err := p.templates.Findings(c.Context(), c.Identity(), version)
		if err != nil {
			return wire.Published{}, err
		}
		v.Refused = append(shownFindings(findings), v.schemaFindings()...)
		if len(v.Refused) > 0 {
			return wire.Published{}, nil
		}
	}
	v.Question, err = p.newLabel(c, v.Head, v.Label)
	if err != nil || v.Question != "" {
		return wire.Published{}, err
	}

	version.Author = c.User.Email

	return p.templates.Publish(c.Context(), c.Identity(), version)
}

// showNotSaved shows the editor again with an error that its user can do something about.
func (p *pages) showNotSaved(c *frame.Exchange, v editView, err error) error {
	e := wire.AsError(err)
	switch e.Code {
	case wire.CodeInvalid:
		v.Error = plainFields(e)

	case wire.CodeConflict:
		v.Error = e
		head, err := p.templates.Head(c.Context(), c.Identity(), v.Name)
		if err == nil && !v.New {
			// The page says that another version was saved meanwhile. A person who saves
			// again has read that, so the draft now follows that version.
			v.Overtaken, v.Latest = v.Base, head.Latest()
			v.Base = head.Latest()
		}

	default:
		return err
	}

	return p.showEditor(c, e.Status(), v)
}

// redirectToSaved shows the version that a draft became. It may be the one that it was
// made from, if nothing was changed.
func redirectToSaved(c *frame.Exchange, v draft, p wire.Published) error {
	to := address.Template("/template", p.Name, "v", strconv.Itoa(p.VersionNumber))
	if p.VersionNumber == v.Base && v.Tags == v.OldTags {
		return c.Redirect(to, "unchanged")
	}

	return c.Redirect(to, "saved")
}

// plainFields returns an error whose fields have the names that the form shows.
func plainFields(e *wire.Error) *wire.Error {
	plain := *e
	plain.Message = "This cannot be saved yet."
	plain.Fields = slices.Clone(e.Fields)
	for i := range plain.Fields {
		plain.Fields[i].Field = plainField(plain.Fields[i].Field)
	}

	return &plain
}

// plainNames are the names that the form shows for fields of the API.
var plainNames = map[string]string{
	"prompt_name": "Name", "commit_message": "Commit message", "release_labels[0]": "Label",
	"messages": "Message", "tools": "Tool",
}

// partPath matches the path of a field in a message or a tool.
var partPath = regexp.MustCompile(`^(messages|tools)\[(\d+)\](?:\.function)?(.*)$`)

// plainField returns the name that the form shows for a field of the API.
func plainField(field string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(field, "prompt_version."), "prompt_template.")
	if plain, ok := plainNames[name]; ok {
		return plain
	}
	m := partPath.FindStringSubmatch(name)
	if m == nil {
		return name
	}
	n, _ := strconv.Atoi(m[2])

	return plainNames[m[1]] + " " + strconv.Itoa(n+1) + strings.ReplaceAll(m[3], ".", " ")
}

// previewView is what a draft would become.
type previewView struct {
	Messages  []conversation.Message // as a model would get them
	Kwargs    string                 // for the client of Provider
	Provider  string
	Variables []string // those that the draft uses
	Unused    []string // those that were given beside them
	Findings  []shownFinding
	Warning   string
	Changes   []textdiff.Row // to a version; nil if there are none
	Against   int            // that version: what the draft's label points to, or the latest
	Error     *wire.Error    // why there are no Kwargs, or nothing at all
}

// renderDraft renders a draft with its variables: as messages, and for its provider.
func (p *pages) renderDraft(c *frame.Exchange, v draft) previewView {
	out := previewView{Provider: cmp.Or(v.For, v.Provider)}
	// A draft without a name has a preview, too.
	v.Name = cmp.Or(v.Name, "draft")

	version, variables, err := v.previewInput()
	if err != nil {
		out.Error = previewFault(err)
		return out
	}

	// A new template, and a new label, have nothing to be compared with.
	from, err := p.templates.Source(c.Context(), c.Identity(), v.Name, wire.Selector{Label: v.Label})
	if err == nil {
		draft := wire.RawTemplate{Blueprint: version.Blueprint, Metadata: version.Metadata}
		out.Against, out.Changes = from.Version, textdiff.Lines(versionText(from), versionText(draft))
	}

	// The messages are shown even if the draft's own provider does not accept them.
	fetch := wire.TemplateFetch{Provider: plainProvider, Model: "any", Variables: variables}
	plain, findings, err := p.templates.Preview(c.Context(), c.Identity(), version, fetch)
	out.Findings = append(shownFindings(findings), v.schemaFindings()...)
	if err == nil {
		read := calls.Read(encoded(map[string]any{"kwargs": plain.LLMKwargs}))
		out.Messages = conversation.NewTexts(json.RawMessage(v.Variables)).Messages("input", read.Input)
		out.Variables = readBlueprint(plain.Blueprint).Variables
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			if !slices.Contains(out.Variables, name) {
				out.Unused = append(out.Unused, name)
			}
		}
		out.Warning = wire.OrZero(plain.Warning)
	}
	if out.Provider == "" {
		out.Error = previewFault(err)
		return out
	}

	// The arguments for the provider that the draft is made for.
	fetch = wire.TemplateFetch{Provider: out.Provider, Variables: variables}
	rendered, _, err := p.templates.Preview(c.Context(), c.Identity(), version, fetch)
	if err != nil {
		out.Error = previewFault(err)

		// The error says what the provider lacks, as the findings do. They also name places in texts.
		out.Findings = slices.DeleteFunc(out.Findings, func(f shownFinding) bool { return f.Field == "" })

		return out
	}
	out.Kwargs = markup.Indent(string(rendered.LLMKwargs))
	out.Warning = wire.OrZero(rendered.Warning)

	return out
}

// previewInput returns what the draft would publish, and the variables to render it with.
func (d *draft) previewInput() (wire.Publish, map[string]json.RawMessage, error) {
	p, err := d.publish()
	if err != nil {
		return p, nil, err
	}

	var variables map[string]json.RawMessage
	if json.Unmarshal([]byte(d.Variables), &variables) != nil {
		fault := wire.FieldError{Field: "Variables", Reason: `must be an object, such as {"name": "value"}`}
		return p, nil, wire.Invalid(fault)
	}

	return p, variables, nil
}

// plainProvider is the provider whose arguments can express the most of a template. They
// are what a rendering is shown from.
const plainProvider = "openai"

func previewFault(err error) *wire.Error {
	if err == nil {
		return nil
	}

	e := wire.AsError(err)
	if e.Code == wire.CodeInvalid {
		e = plainFields(e)
		e.Message = "This cannot be rendered."
	}

	return e
}

// preview answers the page's script, which asks for the preview alone.
func (p *pages) preview(c *frame.Exchange) error {
	return c.Part("edit", "preview", p.renderDraft(c, readDraft(c.PostForm)))
}

// reviewEdit shows the editor with what was typed.
func (p *pages) reviewEdit(c *frame.Exchange) error {
	// A button that changes nothing.
	c.PostForm.Set("do", "review")

	return p.edit(c)
}

// draftTool is a tool of a draft. A function has fields, anything else is edited as JSON.
type draftTool struct {
	Name        string
	Description string
	Parameters  string // a JSON Schema, or ""
	More        string // the function's other members: a JSON object, or ""

	JSON string // the whole tool, if it is not in the fields; else ""
}

// newTool is what a tool that is edited as JSON begins with.
const newTool = "{\n  \"type\": \"\",\n  \"name\": \"\"\n}"

// draftToolFrom puts a tool into the form. One that the fields would change stays as JSON.
func draftToolFrom(raw json.RawMessage) draftTool {
	var tool, function map[string]json.RawMessage
	// The registry has checked it.
	_ = json.Unmarshal(raw, &tool)
	_ = json.Unmarshal(tool["function"], &function)
	t := draftTool{
		Name:        jsonText(function["name"]),
		Description: jsonText(function["description"]),
		More:        without(function, "name", "description", "parameters"),
	}
	if parameters := function["parameters"]; parameters != nil {
		t.Parameters = markup.Pretty(parameters)
	}

	hasFields := len(tool) == 2 && jsonText(tool["type"]) == "function" && t.Parameters != "null"
	if !hasFields || (t.Description != "") != (function["description"] != nil) {
		return draftTool{JSON: markup.Pretty(raw)}
	}

	return t
}

// tools returns the draft's tools as a blueprint has them.
func (d *draft) tools(faults *[]wire.FieldError) (tools []json.RawMessage) {
	for i, t := range d.Tools {
		place, tool := "Tool "+strconv.Itoa(i+1), map[string]json.RawMessage{}
		if t.JSON != "" {
			tool = d.object(place, t.JSON, faults)
		} else {
			function := d.object(place+", more", t.More, faults)
			function["name"] = encoded(t.Name)
			if t.Description != "" {
				function["description"] = encoded(t.Description)
			}
			if strings.TrimSpace(t.Parameters) != "" {
				function["parameters"] = encoded(d.object(place+", parameters", t.Parameters, faults))
			}
			tool["type"], tool["function"] = encoded("function"), encoded(function)
		}
		tools = append(tools, encoded(tool))
	}

	return tools
}
