package dashboard

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire"
)

// roles are what a message of a template can be.
var roles = []string{"system", "developer", "user", "assistant", "tool", "function", "placeholder"}

// editView is what the editor shows.
type editView struct {
	draft
	Head      templateHead // the zero one while there is no template
	Preview   previewView
	Error     *wire.Error
	Refused   []shownFinding // why it was not saved: it cannot be rendered
	Overtaken int            // the version that the draft was made from, when somebody saved another meanwhile; else 0
	Latest    int            // then the newest
	Unsaved   bool           // the fields are those of a form that was sent, not those of a version
	Roles     []string
	Providers []string
}

func (d *Dashboard) editPage(c *call) error {
	name := c.FormValue("name")
	if name == "" {
		return d.showEditor(c, http.StatusOK, editView{draft: newDraft("")})
	}
	head, err := d.head(c, "edit")
	if err != nil {
		return err
	}
	number, err := version(c, "v", head.Latest())
	if err != nil {
		return err
	}
	raw, err := d.Templates.Source(c.Context(), c.identity(), head.Name, wire.Selector{Version: number})
	if err != nil {
		return err
	}
	v := editView{Head: head}
	if v.draft, err = draftOf(head.Template, raw); err != nil {
		return err
	}
	if v.Variables, err = d.newestVariables(c, head.Name); err != nil {
		return err
	}
	return d.showEditor(c, http.StatusOK, v)
}

// newestVariables are those of the template's newest request: something to try a draft with.
func (d *Dashboard) newestVariables(c *call, name string) (string, error) {
	page, err := d.Records.Search(c.Context(), c.identity(), wire.Search{FilterGroup: filterOf(name, 0), PerPage: 1})
	if err != nil || len(page.Items) == 0 {
		return "{}", err
	}
	r, err := d.Records.Request(c.Context(), c.identity(), page.Items[0].RequestID)
	if wire.IsCode(err, wire.CodeNotFound) || err == nil && (r.Prompt == nil || len(r.Prompt.InputVariables) > shownBytesMax) {
		return "{}", nil // deleted since, or too long to edit
	}
	if err != nil {
		return "", err
	}
	if laid := layOut(string(r.Prompt.InputVariables)); laid != "" {
		return laid, nil
	}
	return "{}", nil
}

// filterOf finds the requests of a template; version 0 is all.
func filterOf(name string, version int) *wire.Filter {
	f := filter{Conditions: []condition{{"prompt_name", "", "is", name}}}
	if version > 0 {
		f = f.with(condition{"prompt_version_number", "", "is", strconv.Itoa(version)})
	}
	return &wire.Filter{Logic: "AND", Filters: conditions(f)}
}

func conditions(f filter) (all []wire.Filter) {
	for _, c := range f.Conditions {
		all = append(all, c.filter())
	}
	return all
}

func (d *Dashboard) showEditor(c *call, status int, v editView) error {
	title := "Edit " + v.Name
	if v.New {
		title = "New template"
	}
	v.Roles, v.Providers = roles, d.Providers
	v.Preview = d.render(c, v.draft)
	return d.show(c, status, "edit", title, "templates", v)
}

// saveAnyway is the button that saves what cannot be rendered as well.
const saveAnyway = "save-anyway"

// edit carries out a button of the editor's form: one that changes the form, or one that saves.
func (d *Dashboard) edit(c *call) error {
	v := editView{draft: readDraft(c.PostForm), Unsaved: true}
	if !v.New {
		var err error
		if v.Head, err = d.head(c, "edit"); err != nil {
			return err
		}
	}
	do := c.PostForm.Get("do")
	if do != "save" && do != saveAnyway {
		v.change(do)
		return d.showEditor(c, http.StatusOK, v)
	}
	p, err := v.publish()
	if err == nil && do == "save" {
		var findings []wire.Finding
		if findings, err = d.Templates.Findings(c.Context(), c.identity(), p); len(findings) > 0 {
			v.Refused = shownFindings(findings)
			return d.showEditor(c, http.StatusUnprocessableEntity, v)
		}
	}
	if err == nil {
		p.Author = c.User.Email
		var saved wire.Published
		if saved, err = d.Templates.Publish(c.Context(), c.identity(), p); err == nil {
			return d.saved(c, v.draft, saved)
		}
	}
	e := wire.AsError(err)
	switch e.Code {
	case wire.CodeInvalid:
		v.Error = plainFields(e)
	case wire.CodeConflict:
		v.Error = e
		if head, err := d.Templates.Head(c.Context(), c.identity(), v.Name); err == nil && !v.New {
			v.Overtaken, v.Latest, v.Base = v.Base, head.Latest(), head.Latest() // who has been told may save after it
		}
	default:
		return err
	}
	return d.showEditor(c, e.Status(), v)
}

// saved tells that a version was made, or that there was nothing to save.
func (d *Dashboard) saved(c *call, v draft, p wire.Published) error {
	to := templateAddress("/template", p.Name, "v", strconv.Itoa(p.VersionNumber))
	if p.VersionNumber == v.Base && v.Tags == v.OldTags {
		return c.done(to, "unchanged")
	}
	detail := "version " + strconv.Itoa(p.VersionNumber)
	if v.Message != "" {
		detail += ": " + v.Message
	}
	if err := d.People.Note(c.Context(), c.User, "save template", p.Name, detail); err != nil {
		return err
	}
	return c.done(to, "saved")
}

// plainFields names fields as the form does.
func plainFields(e *wire.Error) *wire.Error {
	plain := *e
	plain.Message, plain.Fields = "This cannot be saved yet.", slices.Clone(e.Fields)
	for i, f := range plain.Fields {
		name := strings.TrimPrefix(strings.TrimPrefix(f.Field, "prompt_version."), "prompt_template.")
		if at, rest, ok := strings.Cut(strings.TrimPrefix(name, "messages["), "]"); ok && strings.HasPrefix(name, "messages[") {
			n, _ := strconv.Atoi(at)
			name = "Message " + strconv.Itoa(n+1) + strings.ReplaceAll(rest, ".", " ")
		}
		switch name {
		case "prompt_name":
			name = "Name"
		case "commit_message":
			name = "Commit message"
		}
		plain.Fields[i].Field = name
	}
	return &plain
}

// previewView is what a draft would become.
type previewView struct {
	Messages  []shownMessage // as a model would get them
	Kwargs    string         // for the client of Provider
	Provider  string
	Variables []string // that the draft uses
	Findings  []shownFinding
	Warning   string
	Error     *wire.Error // of all, or of Kwargs if Messages are there
}

// render renders a draft with its variables: as messages, and for its provider.
func (d *Dashboard) render(c *call, v draft) (out previewView) {
	out.Provider = cmp.Or(v.For, v.Provider)
	v.Name = cmp.Or(v.Name, "draft") // what has no name yet can be looked at
	p, err := v.publish()
	var variables map[string]json.RawMessage
	if err == nil && json.Unmarshal([]byte(v.Variables), &variables) != nil {
		err = wire.Invalid(wire.FieldError{Field: "Variables", Reason: `must be an object, as {"name": "value"}`})
	}
	if err != nil {
		out.Error = previewFault(err)
		return out
	}
	fetch := wire.TemplateFetch{Provider: plainProvider, Model: "any", Variables: variables}
	plain, findings, err := d.Templates.Preview(c.Context(), c.identity(), p, fetch)
	out.Findings = shownFindings(findings)
	if err == nil {
		read, t := d.Read(encoded(map[string]any{"kwargs": plain.LLMKwargs})), newTexts(json.RawMessage(v.Variables))
		out.Messages = t.messages(read.Input)
		out.Variables = variablesOf(plain.Blueprint)
		out.Warning = warning(plain)
	}
	if out.Provider == "" {
		out.Error = previewFault(err)
		return out
	}
	fetch = wire.TemplateFetch{Provider: out.Provider, Variables: variables}
	own, _, err := d.Templates.Preview(c.Context(), c.identity(), p, fetch)
	if err != nil {
		out.Error = previewFault(err)
		out.Findings = slices.DeleteFunc(out.Findings, func(f shownFinding) bool { return f.tells(err) })
		return out
	}
	out.Kwargs, out.Warning = layOut(string(own.LLMKwargs)), warning(own)
	return out
}

// plainProvider is the one whose arguments say the most of what a template can: by them a rendering is shown.
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

func warning(t wire.RenderedTemplate) string {
	if t.Warning == nil {
		return ""
	}
	return *t.Warning
}

func variablesOf(blueprint json.RawMessage) []string {
	var b struct {
		Variables []string `json:"input_variables"`
	}
	_ = json.Unmarshal(blueprint, &b) // the registry made it
	return b.Variables
}

// preview answers the script, which asks for the preview alone.
func (d *Dashboard) preview(c *call) error {
	return d.part(c, "edit", "preview", d.render(c, readDraft(c.PostForm)))
}
