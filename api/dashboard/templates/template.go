package templates

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/calls"
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/markup"
	"promptspool/api/wire"
	"promptspool/api/words"
)

// templateHead is what every page of a template shows at its top.
type templateHead struct {
	wire.Template
	Tab   string
	Shown int // the version whose text the page shows, if it shows one
}

// Head returns the head itself: pages are shown with what they have beside it.
func (h templateHead) Head() templateHead { return h }

// Number returns the latest version's number, or 0 if there is none.
func (h templateHead) Number() int { return h.Latest() }

// latestVersions returns the numbers of the newest versions, at most so many.
func (h templateHead) latestVersions(most int) []int {
	var numbers []int
	for n := h.Latest(); n > max(0, h.Latest()-most); n-- {
		numbers = append(numbers, n)
	}

	return numbers
}

// of returns the page of a template, which the call names. tab is that of the page, if it has one.
func (p *pages) of(tab string, page func(c *frame.Exchange, head templateHead) error) func(c *frame.Exchange) error {
	return func(c *frame.Exchange) error {
		head, err := p.head(c, tab)
		if err != nil {
			return err
		}

		return page(c, head)
	}
}

// head returns the template that a page is about.
func (p *pages) head(c *frame.Exchange, tab string) (templateHead, error) {
	head, err := p.templates.Head(c.Context(), c.Identity(), c.FormValue("name"))
	if wire.IsCode(err, wire.CodeNotFound) {
		err = wire.Errorf(wire.CodeNotFound, "This project has no such template.")
	}

	return templateHead{Template: head, Tab: tab}, err
}

const (
	versionsPerPage = 30
	movesShown      = 30
)

// templateView is what the page of a template shows.
type templateView struct {
	templateHead
	Raw          wire.RawTemplate
	Messages     []conversation.Message
	Tools, Model string // as JSON
	ModelName    string
	Variables    []string
	Versions     []versionRow // newest first
	Newer, Older string       // the addresses of the neighbouring pages of versions
	Moves        []wire.Move  // newest first
	MovesCut     int
	Findings     []shownFinding // why the shown version cannot be rendered
	NotMoved     string         // the label that was not moved because of Findings, or ""
	Question     string         // asked before a label is created; see newLabel
}

// versionRow is a version in the list of versions.
type versionRow struct {
	wire.Stamp
	Number int
	Labels []wire.Label
	Shown  bool
}

func (p *pages) templatePage(c *frame.Exchange, head templateHead) (err error) {
	v := templateView{templateHead: head}
	if head.DeletedAt == nil {
		v.Shown, err = versionParam(c, "v", v.Latest())
		if err != nil {
			return err
		}
	}

	return p.showTemplate(c, http.StatusOK, v)
}

// showTemplate shows the page of a template with the text of version v.Shown. An archived
// template is shown without a text.
func (p *pages) showTemplate(c *frame.Exchange, status int, v templateView) error {
	if v.DeletedAt == nil {
		if err := p.showVersion(c, &v); err != nil {
			return err
		}
	}

	v.listVersions(c.FormValue("page"))
	for _, m := range slices.Backward(v.Template.Moves) {
		if len(v.Moves) == movesShown {
			v.MovesCut = len(v.Template.Moves) - movesShown
			break
		}
		v.Moves = append(v.Moves, m)
	}

	authors := []*string{&v.Raw.Author}
	for i := range v.Versions {
		authors = append(authors, &v.Versions[i].Author)
	}
	for i := range v.Moves {
		authors = append(authors, &v.Moves[i].By)
	}
	if err := c.NameKeys(authors...); err != nil {
		return err
	}

	title := v.Name
	if v.Shown > 0 {
		title += " v" + strconv.Itoa(v.Shown)
	}

	return c.Show(status, "template", title, "templates", v)
}

// showVersion reads version v.Shown into the view.
func (p *pages) showVersion(c *frame.Exchange, v *templateView) (err error) {
	selector := wire.Selector{Version: v.Shown}
	v.Raw, err = p.templates.Source(c.Context(), c.Identity(), v.Name, selector)
	if err != nil {
		return err
	}
	findings, err := p.templates.FindingsOf(c.Context(), c.Identity(), v.Name, selector)
	if err != nil {
		return err
	}

	v.Findings = shownFindings(findings)

	// The texts are the template's own: there are no values of variables to mark.
	v.Messages = conversation.NewTexts(nil).Messages("input", blueprintMessages(v.Raw.Blueprint))

	b := readBlueprint(v.Raw.Blueprint)
	_, v.ModelName = kindAndModel(v.Raw.Blueprint, v.Raw.Metadata)
	v.Variables, v.Tools, v.Model = b.Variables, markup.Indent(string(b.Tools)), markup.Indent(string(v.Raw.Metadata))

	return nil
}

// versionParam returns the version that a call's parameter names, or the default if it has
// no such parameter.
func versionParam(c *frame.Exchange, name string, byDefault int) (int, error) {
	text := c.FormValue(name)
	if text == "" {
		return byDefault, nil
	}

	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, wire.Errorf(wire.CodeNotFound, "There is no such version.")
	}

	return n, nil
}

// blueprintParts are what pages show of a blueprint by itself.
type blueprintParts struct {
	Type      string          `json:"type"`
	Messages  json.RawMessage `json:"messages"`
	Content   json.RawMessage `json:"content"`
	Tools     json.RawMessage `json:"tools"`
	Variables []string        `json:"input_variables"`
}

func readBlueprint(raw json.RawMessage) (b blueprintParts) {
	// The registry has checked it.
	_ = json.Unmarshal(raw, &b)

	return b
}

// blueprintMessages returns the messages of a blueprint. A completion is one message
// without a role.
func blueprintMessages(blueprint json.RawMessage) []calls.Message {
	b := readBlueprint(blueprint)
	// The reader knows the messages of a call, so the text of a completion becomes one for it.
	completion := b.Type == "completion"
	if completion {
		b.Messages = encoded([]any{map[string]any{"role": "user", "content": b.Content}})
	}
	read := calls.Read(encoded(map[string]any{"kwargs": map[string]any{"messages": b.Messages}})).Input
	if completion && len(read) > 0 {
		read[0].Role = "text"
	}

	return read
}

// listVersions puts one page of the versions into the view.
func (v *templateView) listVersions(page string) {
	lastPage := max(1, (v.Latest()+versionsPerPage-1)/versionsPerPage)
	at, _ := strconv.Atoi(page)
	at = min(max(at, 1), lastPage)

	// A version may have several labels.
	labels := map[int][]wire.Label{}
	for _, l := range v.Labels {
		labels[l.Version] = append(labels[l.Version], l)
	}

	first := v.Latest() - (at-1)*versionsPerPage
	for n := first; n > max(0, first-versionsPerPage); n-- {
		v.Versions = append(v.Versions, versionRow{
			Stamp:  v.Template.Versions[n-1],
			Number: n,
			Labels: labels[n],
			Shown:  n == v.Shown,
		})
	}

	if at > 1 {
		v.Newer = address.Template("/template", v.Name, "page", strconv.Itoa(at-1))
	}
	if first > versionsPerPage {
		v.Older = address.Template("/template", v.Name, "page", strconv.Itoa(at+1))
	}
}

func (p *pages) archiveTemplate(c *frame.Exchange, head templateHead) error {
	return p.changeTemplate(c, head, p.templates.Archive, "archived")
}

func (p *pages) restoreTemplate(c *frame.Exchange, head templateHead) error {
	return p.changeTemplate(c, head, p.templates.Restore, "restored")
}

// changeTemplate changes a template as a whole, and returns to its page.
func (p *pages) changeTemplate(
	c *frame.Exchange, head templateHead, change func(ctx context.Context, id wire.Identity, ident, by string) error,
	done string,
) error {
	if err := change(c.Context(), c.Identity(), head.Name, c.User.Email); err != nil {
		return err
	}

	return c.Redirect(address.Template("/template", head.Name), done)
}

// way is a way to fetch a template, to be pasted into an app.
type way struct{ ID, Name, Text string }

// useText has the texts of all ways, in the order of their names.
//
//go:embed use.txt
var useText string

// Uses returns ways to fetch the template from the server at an address: by the label prod, by another
// one, or the latest version.
func (v templateView) Uses(base string) (ways []way) {
	variables, body := map[string]string{}, map[string]any{}
	for _, name := range v.Variables {
		variables[name] = "..."
	}
	body["input_variables"] = variables
	for _, l := range v.Labels {
		if body["label"] == nil || l.Name == "prod" {
			body["label"] = l.Name
		}
	}

	object := markup.Indent(string(encoded(body)))
	fill := strings.NewReplacer("{address}", base+"/prompt-templates/"+url.PathEscape(v.Name),
		"{body}", object, "{in shell}", strings.ReplaceAll(object, "'", `'\''`))
	texts := strings.Split(useText, "\n---\n")
	for i, name := range []string{"curl", "Python", "JavaScript"} {
		ways = append(ways, way{strings.ToLower(name), name, fill.Replace(texts[i])})
	}

	return ways
}

// newLabel returns what is asked before a template gets a label of a new name. It is "" if there is an
// answer: the name exists in the project, it was agreed to, or there is none with which it could be
// confused.
func (p *pages) newLabel(c *frame.Exchange, head templateHead, name string) (question string, err error) {
	if name == "" || name == c.PostForm.Get("agreed") || head.labelled(name) >= 0 {
		return "", nil
	}
	list, err := p.templates.List(c.Context(), c.Identity(), wire.TemplateListQuery{PerPage: wire.PageItemsMax})
	if err != nil {
		return "", err
	}

	known := wire.LabelNames(list.Items)
	if len(known) == 0 || slices.Contains(known, name) {
		return "", nil
	}

	slices.Sort(known)
	question = fmt.Sprintf("Create the new label %s? Existing: %s.", name, strings.Join(known, ", "))
	if near := words.Closest(name, known); len(near) > 0 {
		question += " Did you mean " + near[0] + "?"
	}

	return question, nil
}

// labelled returns the index of a label of the template, or -1.
func (h templateHead) labelled(name string) int {
	return slices.IndexFunc(h.Labels, func(l wire.Label) bool { return l.Name == name })
}

// moveLabel points a label to a version. One that points to another is moved from the page that compares
// both. A version that cannot be rendered is shown first, with a button that moves the label anyway, and
// so is a question about a new label.
func (p *pages) moveLabel(c *frame.Exchange, head templateHead) error {
	w, err := readLabel(c)
	if err != nil {
		return err
	}

	version := strconv.Itoa(w.Version)
	i := head.labelled(w.Name)
	if from := c.PostForm.Get("from"); from != "" && (i < 0 || strconv.Itoa(head.Labels[i].Version) != from) {
		return wire.Errorf(wire.CodeConflict, "The label was changed meanwhile, so it was not moved back.")
	}
	if i >= 0 && head.Labels[i].Version != w.Version && c.PostForm.Get("compared") == "" {
		from := strconv.Itoa(head.Labels[i].Version)
		return c.Redirect(
			address.Template("/template/compare", head.Name, "a", from, "b", version, "label", w.Name), "")
	}

	// Versions that do not exist are left to CreateLabel, which explains them.
	exists := w.Version >= 1 && w.Version <= head.Latest() && head.DeletedAt == nil
	if exists && c.PostForm.Get("anyway") == "" {
		selector := wire.Selector{Version: w.Version}
		findings, err := p.templates.FindingsOf(c.Context(), c.Identity(), head.Name, selector)
		if err != nil {
			return err
		}
		question, err := p.newLabel(c, head, w.Name)
		if err != nil {
			return err
		}
		if len(findings) > 0 || question != "" {
			head.Tab, head.Shown = "text", w.Version
			v := templateView{templateHead: head, NotMoved: w.Name, Question: question}
			return p.showTemplate(c, http.StatusUnprocessableEntity, v)
		}
	}

	placed, err := p.templates.CreateLabel(c.Context(), c.Identity(), head.Name, w, c.User.Email)
	if err != nil {
		return err
	}

	// The page itself says that a label was moved.
	done := "label"
	if placed.Was > 0 && placed.Was != w.Version {
		done = ""
	}

	return c.Redirect(address.Template("/template", head.Name, "v", version), done)
}

// readLabel reads a label's form by the rules of the API.
func readLabel(c *frame.Exchange) (wire.LabelWrite, error) {
	return wire.DecodeForm[wire.LabelWrite](url.Values{
		"name":                  c.PostForm["label"],
		"prompt_version_number": c.PostForm["version"],
	})
}

func (p *pages) deleteLabel(c *frame.Exchange, head templateHead) error {
	// The label may have been deleted in another tab.
	i := head.labelled(c.PostForm.Get("label"))
	if i < 0 {
		return wire.Errorf(wire.CodeNotFound, "The template no longer has this label.")
	}

	if err := p.templates.DeleteLabel(c.Context(), c.Identity(), head.Labels[i].ID, c.User.Email); err != nil {
		return err
	}

	return c.Redirect(address.Template("/template", head.Name), "unlabelled")
}

// undoMax is how long the page offers to take back a move of its reader.
const undoMax = 30 * time.Second

// Moved returns the reader's move of a label, if it is the last one and was made just now, else nil.
func (v templateView) Moved(now time.Time, reader string) *wire.TemplateMove {
	moved := v.Template.Moved()
	if len(moved) == 0 {
		return nil
	}

	last := moved[len(moved)-1]
	followed := last.Move != v.Template.Moves[len(v.Template.Moves)-1]
	if followed || last.By != reader || now.Sub(last.At) > undoMax {
		return nil
	}

	return &last
}
