package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/registry/render"
)

// The labels of a template, their history and a line for each version are part of its
// head, which every fetch reads and every change writes again.
const (
	labelsMax     = 256
	labelsMadeMax = 1<<16 - 1 // labels that a template ever had: their ids have no space for more
	versionsMax   = 10_000
	movesMax      = 10_000 // moves in the history of labels; see addMove
)

// errMoved ends an attempt to publish when another version was published meanwhile.
var errMoved = errors.New("another version was published meanwhile")

// Publish makes p the latest version of its template, and moves p's labels to it, in one
// durable step. It creates the template if there is none.
//
// If the latest version has the same blueprint and metadata, no version is created;
// labels and tags still apply, and the existing commit message stays. Version numbers
// have no gaps, however many callers publish concurrently. A template that cannot be
// rendered is published with warnings.
//
// wire.CodeInvalid lists what is wrong with the blueprint or the metadata.
// wire.CodeConflict means that p's base is not the latest version.
func (r *Registry) Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error) {
	if !id.Sees(p.Name) {
		return wire.Published{}, wire.Errorf(wire.CodeForbidden,
			"This key publishes only templates whose names begin with %s.", quote(id.Prefix))
	}
	expanded, err := r.check(ctx, id, &p)
	if err != nil {
		return wire.Published{}, err
	}
	if err := r.checkExternalIDs(ctx, id, &p); err != nil {
		return wire.Published{}, err
	}
	warnings := append(expanded.Findings(p.Metadata), expanded.Hints()...)

	by := p.Author
	p.Author = orKey(by, id)
	if p.Metadata == nil {
		p.Metadata = json.RawMessage("null")
	}

	// A conflict is rare, and the other publisher has succeeded, so only the caller's
	// patience bounds the attempts.
	out, done, err := r.publish(ctx, id.Account, p)
	for errors.Is(err, errMoved) {
		if ctx.Err() != nil {
			return wire.Published{}, ctx.Err()
		}
		out, done, err = r.publish(ctx, id.Account, p)
	}
	if err != nil {
		return out, err
	}

	// Woken even if only labels moved, and also if nothing changed: a needless wake is
	// cheap.
	r.waiters.wake(id.Account)
	r.log.Info("template published",
		"project", id.Account, "name", p.Name, "version", out.VersionNumber,
		"labels", p.Labels, "warnings", len(warnings))
	r.notePublished(ctx, id, by, p, out.VersionNumber, done)
	out.Warnings = nonNil(warnings)

	return out, nil
}

// checkExternalIDs returns wire.CodeConflict if another template has an external id of p.
func (r *Registry) checkExternalIDs(ctx context.Context, id wire.Identity, p *wire.Publish) error {
	if len(p.ExternalIDs) == 0 {
		return nil
	}
	heads, err := r.store.Templates(ctx, id.Account)
	if err != nil {
		return err
	}

	for _, external := range p.ExternalIDs {
		for _, head := range heads {
			if head.Name != p.Name && slices.Contains(head.ExternalIDs, external) {
				return wire.Errorf(wire.CodeConflict,
					"The external id %s of %s belongs to %s. Publish that one without it first.",
					quote(external.ID), quote(external.Source), visibleName(id, head.Name))
			}
		}
	}

	return nil
}

// publish compares p with the latest version and then writes. It returns errMoved if
// another version came between the two.
func (r *Registry) publish(
	ctx context.Context, account string, p wire.Publish,
) (_ wire.Published, done applied, err error) {
	latest, err := r.latest(ctx, account, p.Name)
	if err != nil {
		return wire.Published{}, done, err
	}
	// Checked here and, by the number, in the transaction: no edit is overwritten unseen.
	if p.Base != nil && *p.Base != latest.Number {
		return wire.Published{}, done, baseOutdated(p.Name, latest)
	}

	number, commitMessage := latest.Number+1, p.CommitMessage
	unchanged := latest.Number > 0 &&
		SameJSON(latest.Blueprint, p.Blueprint) && SameJSON(latest.Metadata, p.Metadata)
	if unchanged {
		number, commitMessage = latest.Number, latest.CommitMessage
	}

	snippets := snippetNames(p.Name, p.Blueprint)

	// Texts are compared outside the transaction, which may hold a lock: only the number
	// is checked again within it.
	change := func(t *wire.Template) (*wire.Version, bool, error) {
		if t.Latest() != latest.Number {
			return nil, false, errMoved
		}

		now := r.notBefore(t.UpdatedAt)
		done, err = apply(t, p, number, now)
		done.version = !unchanged
		if err != nil || !done.any() {
			return nil, false, err
		}

		t.UpdatedAt = now
		if unchanged {
			// Labels or tags have changed: there is no new version to store.
			return nil, true, nil
		}
		if t.Latest() >= versionsMax {
			return nil, false, tooManyVersions(p.Name)
		}
		if t.CreatedAt.IsZero() {
			t.CreatedAt = now
		}
		t.Snippets = snippets

		return &wire.Version{
			Blueprint:     p.Blueprint,
			Metadata:      p.Metadata,
			CommitMessage: p.CommitMessage,
			Author:        p.Author,
			CreatedAt:     now,
		}, true, nil
	}
	head, err := r.store.UpdateTemplate(ctx, account, p.Name, change)
	if err != nil {
		return wire.Published{}, done, err
	}

	out := published(&head, number, p.Blueprint, p.Metadata, commitMessage)
	if p.CommitMessage != "" && p.CommitMessage != commitMessage {
		out.Warning = wire.OrNull(fmt.Sprintf(
			"Version %d already has this content, so no version was created and the commit message %s "+
				"was discarded.",
			number, quote(p.CommitMessage)))
	}

	return out, done, nil
}

// notBefore returns the time, but never one before t: history is looked up by time, and a
// clock that was set back must not reorder it.
func (r *Registry) notBefore(t time.Time) time.Time {
	now := r.now().UTC()
	if now.Before(t) {
		return t
	}

	return now
}

func tooManyVersions(name string) error {
	return wire.Errorf(wire.CodeConflict,
		"%s has %d versions, the most that a template can have. Publish under another name.",
		quote(name), versionsMax)
}

// baseOutdated returns the error for a publish over a version that is no longer the
// latest.
func baseOutdated(name string, latest wire.Version) error {
	if latest.Number == 0 {
		return wire.Errorf(wire.CodeConflict, "The template %s no longer exists.", quote(name))
	}

	return wire.Errorf(wire.CodeConflict,
		"%s saved version %d of %s in the meantime. Review that change, then save again to publish "+
			"yours after it.",
		latest.Author, latest.Number, quote(name))
}

// latest returns the newest version of the template with exactly this name; the zero
// Version if there is none.
func (r *Registry) latest(ctx context.Context, account, name string) (wire.Version, error) {
	head, err := r.store.Template(ctx, account, name)
	// A name of digits may find another template by its id: that one is not meant.
	if wire.IsCode(err, wire.CodeNotFound) || err == nil && (head.Name != name || head.Latest() == 0) {
		return wire.Version{}, nil
	}
	if err != nil {
		return wire.Version{}, err
	}

	return r.version(ctx, account, &head, head.Latest())
}

// applied is what a publish has changed.
type applied struct {
	version  bool // there is a new one
	tags     bool
	external bool
	restored bool
	moved    []move
}

func (a applied) any() bool {
	return a.version || a.tags || a.external || a.restored || len(a.moved) > 0
}

// apply moves p's labels to a version, sets its tags and external ids, and restores a deleted
// template.
func apply(t *wire.Template, p wire.Publish, number int, now time.Time) (done applied, err error) {
	for _, name := range p.Labels {
		if m := moveLabel(t, name, number, now, p.Author); m.was != m.is {
			done.moved = append(done.moved, m)
		}
	}
	// Only now, because a label that existed was moved and not added.
	if err := checkLabelCount(t); err != nil {
		return done, err
	}
	if p.Tags != nil && !slices.Equal(p.Tags, t.Tags) {
		t.Tags, done.tags = p.Tags, true
	}
	if p.ExternalIDs != nil && !slices.Equal(p.ExternalIDs, t.ExternalIDs) {
		t.ExternalIDs, done.external = p.ExternalIDs, true
	}
	if t.DeletedAt != nil {
		t.DeletedAt, done.restored = nil, true
	}

	return done, nil
}

// checkLabelCount rejects a template with more labels than it may have.
func checkLabelCount(t *wire.Template) error {
	if len(t.Labels) <= labelsMax && t.LabelsMade <= labelsMadeMax {
		return nil
	}

	return wire.Invalid(wire.FieldError{
		Field:  "release_labels",
		Reason: fmt.Sprintf("would give the template more than %d labels; move an existing one", labelsMax),
	})
}

// moveLabel points a label to a version, or deletes it if that is 0. It notes the move, unless the
// label is there already.
func moveLabel(t *wire.Template, label string, number int, now time.Time, by string) move {
	i, found := findLabel(t.Labels, label)
	m := move{label: label, is: number}
	if found {
		m.was = t.Labels[i].Version
	}

	switch {
	case m.was == number:
		return m
	case number == 0:
		t.Labels = slices.Delete(t.Labels, i, i+1)
	case !found:
		// Counted up for good: a label that is made again under its old name is another
		// one.
		t.LabelsMade++
		id := wire.LabelID(t.ID, t.LabelsMade)
		t.Labels = slices.Insert(t.Labels, i, wire.Label{ID: id, Name: label, Version: number})
	default:
		t.Labels[i].Version = number
	}

	addMove(t, wire.Move{Label: label, Version: number, At: now, By: by})

	return m
}

// addMove appends to the history of a template's labels. Beyond movesMax it drops the
// oldest move that is not its label's last: where each label is, and since when, stays
// known.
func addMove(t *wire.Template, m wire.Move) {
	t.Moves = append(t.Moves, m)
	if len(t.Moves) <= movesMax {
		return
	}

	// The last move of a label answers since when it points where it does.
	last := make(map[string]int)
	for i := range t.Moves {
		last[t.Moves[i].Label] = i
	}
	for i := range t.Moves {
		if last[t.Moves[i].Label] > i {
			t.Moves = slices.Delete(t.Moves, i, i+1)
			return
		}
	}
}

// findLabel finds a label by name, or where it belongs: labels are sorted by name.
func findLabel(labels []wire.Label, name string) (i int, found bool) {
	return slices.BinarySearchFunc(labels, name, func(l wire.Label, name string) int {
		return strings.Compare(l.Name, name)
	})
}

// SameJSON reports whether two texts are the same JSON value, whatever their whitespace,
// escapes and order of members. Numbers are compared as written.
func SameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}

	x, errX := decode(a)
	y, errY := decode(b)

	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decode(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	// As float64 two different large numbers could be equal.
	d.UseNumber()
	err = d.Decode(&v)

	return v, err
}

// Patch publishes the version that p makes of its base: what p does not name stays. A
// patch that changes nothing creates no version, unless its base is not the latest.
//
// wire.CodeInvalid names what does not apply to the base. Other errors as Publish.
func (r *Registry) Patch(
	ctx context.Context, id wire.Identity, ident string, p wire.TemplatePatch,
) (wire.Published, error) {
	base, err := r.source(ctx, id, ident, p.Selector)
	if err != nil {
		return wire.Published{}, err
	}

	blueprint, err := patchBlueprint(base.Blueprint, p)
	if err != nil {
		return wire.Published{}, err
	}
	metadata, err := patchMetadata(base.Metadata, p)
	if err != nil {
		return wire.Published{}, err
	}

	return r.Publish(ctx, id, wire.Publish{
		PublishedName: wire.PublishedName{Name: base.Name},
		PublishedVersion: wire.PublishedVersion{
			Blueprint:     blueprint,
			Metadata:      metadata,
			CommitMessage: p.CommitMessage,
		},
		PublishedPlace: wire.PublishedPlace{Labels: p.Labels},
		Author:         p.Author,
	})
}

// patchBlueprint applies a patch to a blueprint. The order of members may change; it
// means nothing.
func patchBlueprint(blueprint json.RawMessage, p wire.TemplatePatch) (json.RawMessage, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(blueprint, &o); err != nil {
		return nil, err
	}

	// A base has one of two types, each with its own members.
	base, isChat := "a completion", false
	if string(o["type"]) == `"chat"` {
		base, isChat = "a chat", true
	}
	for _, m := range []struct {
		name   string
		change json.RawMessage
		ofChat bool // a member of chats; otherwise of completions
		whole  bool // replaced as a whole
	}{
		{"messages", p.Messages, true, false},
		{"tools", p.Tools, true, false},
		{"functions", p.Functions, true, false},
		{"function_call", p.FunctionCall, true, true},
		{"tool_choice", p.ToolChoice, true, true},
		{"content", p.Content, false, false},
	} {
		switch {
		case m.change == nil:
		case m.ofChat != isChat:
			return nil, wire.Invalid(wire.FieldError{
				Field:  m.name,
				Reason: "does not apply: the base is " + base,
			})
		case string(m.change) == "null":
			delete(o, m.name)
		case m.whole || m.change[0] == '[':
			o[m.name] = m.change
		default:
			elements, err := patchElements(m.name, o[m.name], m.change)
			if err != nil {
				return nil, err
			}
			o[m.name] = elements
		}
	}

	// Publishing computes them again.
	delete(o, "input_variables")

	return json.Marshal(o)
}

// patchElements replaces elements of an array by their index. An index one past the end
// appends.
func patchElements(name string, array, patch json.RawMessage) (json.RawMessage, error) {
	var elements []json.RawMessage
	if array != nil {
		if err := json.Unmarshal(array, &elements); err != nil {
			return nil, err
		}
	}
	var byIndex map[string]json.RawMessage
	if err := json.Unmarshal(patch, &byIndex); err != nil {
		return nil, err
	}
	notIndex := func(text string) error {
		count := english.Plural(len(elements), "element", "")
		return wire.Invalid(wire.FieldError{
			Field:  name + "." + text,
			Reason: fmt.Sprintf("is not an index: the list has %s, counted from 0", count),
		})
	}

	changes := make(map[int]json.RawMessage, len(byIndex))
	for _, text := range slices.Sorted(maps.Keys(byIndex)) {
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 {
			return nil, notIndex(text)
		}
		changes[i] = byIndex[text]
	}
	// From the lowest index up: each may append the element that the next one follows. A
	// patch may have millions of them, so they are not looked for again and again.
	for _, i := range slices.Sorted(maps.Keys(changes)) {
		switch {
		case i > len(elements):
			return nil, notIndex(strconv.Itoa(i))
		case i == len(elements):
			elements = append(elements, changes[i])
		default:
			elements[i] = changes[i]
		}
	}

	return json.Marshal(elements)
}

// patchMetadata merges a patch's parameters into those of the model.
func patchMetadata(metadata json.RawMessage, p wire.TemplatePatch) (json.RawMessage, error) {
	if p.ModelParameters == nil && p.ResponseFormat == nil {
		return metadata, nil
	}

	model, ok := jsonscan.Lookup(metadata, "model")
	if !ok {
		return nil, wire.Invalid(wire.FieldError{
			Field:  "model_parameters",
			Reason: "does not apply: the base names no model in its metadata",
		})
	}

	change := map[string]json.RawMessage{}
	if p.ModelParameters != nil {
		if err := json.Unmarshal(p.ModelParameters, &change); err != nil {
			return nil, err
		}
	}
	if p.ResponseFormat != nil {
		change["response_format"] = p.ResponseFormat
	}

	// From the inside out, so that everything that the patch does not name stays.
	parameters, _ := jsonscan.Lookup(model, "parameters")
	parameters, err := merge(parameters, change)
	if err != nil {
		return nil, err
	}
	model, err = merge(model, map[string]json.RawMessage{"parameters": parameters})
	if err != nil {
		return nil, err
	}

	return merge(metadata, map[string]json.RawMessage{"model": model})
}

// merge sets members of an object; null removes one.
func merge(object json.RawMessage, members map[string]json.RawMessage) (json.RawMessage, error) {
	o := map[string]json.RawMessage{}
	if object != nil {
		if err := json.Unmarshal(object, &o); err != nil {
			return nil, err
		}
	}

	for name, v := range members {
		// A patch takes a member away with null, as RFC 7396 does.
		if string(v) == "null" {
			delete(o, name)
		} else {
			o[name] = v
		}
	}

	return json.Marshal(o)
}

// expand fills in the snippets of a blueprint. It returns wire.CodeInvalid for a snippet
// that does not exist, or for a cycle.
func (r *Registry) expand(
	ctx context.Context, account, name string, blueprint []byte,
) (render.Expanded, error) {
	return render.Expand(name, blueprint, func(s render.Snippet) (render.ResolvedSnippet, error) {
		resolved, head, err := r.resolveSnippet(ctx, account, s)
		// A 404 would mean that the template itself does not exist.
		if wire.IsCode(err, wire.CodeNotFound) {
			err = wire.Invalid(missingSnippet(s, head))
		}

		return resolved, err
	})
}

// resolveSnippet finds the version that a reference means. The head is the zero one if
// there is no such template.
func (r *Registry) resolveSnippet(
	ctx context.Context, account string, s render.Snippet,
) (render.ResolvedSnippet, wire.Template, error) {
	head, err := r.head(ctx, wire.Identity{Account: account}, s.Name)
	if err != nil {
		return render.ResolvedSnippet{}, head, err
	}
	selector := wire.Selector{Version: s.Version, Label: s.Label}
	number, ok := head.Resolve(selector)
	if !ok {
		return render.ResolvedSnippet{}, head, notSelected(&head, selector)
	}

	v, err := r.version(ctx, account, &head, number)

	return render.ResolvedSnippet{Name: head.Name, Version: number, Blueprint: v.Blueprint}, head, err
}

// missingSnippet reports why a reference leads nowhere. The head is the zero one if there is
// no such template.
func missingSnippet(s render.Snippet, head wire.Template) wire.FieldError {
	why := fmt.Sprintf("the latest version of %s is %d", quote(s.Name), head.Latest())
	switch {
	case head.Name == "" || head.DeletedAt != nil:
		why = "there is no template " + quote(s.Name)
	case s.Label != "":
		why = fmt.Sprintf("%s has no label %s", quote(s.Name), quote(s.Label))
	}

	return wire.FieldError{Field: "snippet " + s.String(), Reason: "does not exist: " + why}
}

// snippets returns the names of the templates that the latest version of another one, which is
// not deleted, has as snippets.
func snippets(heads []wire.Template) map[string]bool {
	names := map[string]bool{}
	for _, head := range heads {
		if head.DeletedAt != nil {
			continue
		}
		for _, name := range head.Snippets {
			names[name] = true
		}
	}

	return names
}

// snippetNames returns the templates that a blueprint of a template refers to, each once; not
// nil.
func snippetNames(template string, blueprint []byte) []string {
	names := []string{}
	for _, s := range render.Snippets(blueprint) {
		if s.Name != template && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}

	return names
}

// usersMax bounds the templates that checkUnused names.
const usersMax = 5

// users names templates whose latest or labelled versions use a template as a snippet.
// With a label, only those that refer to it by that label count.
//
// It reads all templates of the account: archiving and deleting are rare.
func (r *Registry) users(ctx context.Context, account, name, label string) ([]string, error) {
	heads, err := r.store.Templates(ctx, account)
	if err != nil {
		return nil, err
	}

	var users []string
	for _, head := range heads {
		// A template does not keep itself in use.
		if head.Name == name || head.DeletedAt != nil {
			continue
		}
		uses, err := r.uses(ctx, account, &head, name, label)
		if err != nil {
			return nil, err
		}
		if !uses {
			continue
		}
		users = append(users, head.Name)
		if len(users) == usersMax {
			break
		}
	}
	return users, nil
}

// uses reports whether a version of the template that apps may fetch refers to a snippet.
func (r *Registry) uses(
	ctx context.Context, account string, head *wire.Template, name, label string,
) (bool, error) {
	numbers := map[int]bool{head.Latest(): true}
	for _, l := range head.Labels {
		numbers[l.Version] = true
	}

	// Older versions may refer to it too, but nothing is served from them by default.
	for number := range numbers {
		v, err := r.version(ctx, account, head, number)
		if err != nil {
			return false, err
		}
		if refers(v.Blueprint, name, label) {
			return true, nil
		}
	}

	return false, nil
}

func refers(blueprint []byte, name, label string) bool {
	return slices.ContainsFunc(render.Snippets(blueprint), func(s render.Snippet) bool {
		return s.Name == name && (label == "" || s.Label == label)
	})
}

// checkUnused returns wire.CodeConflict if other templates use the template, or its
// label, as a snippet.
func (r *Registry) checkUnused(ctx context.Context, id wire.Identity, name, label string) error {
	users, err := r.users(ctx, id.Account, name, label)
	if err != nil || users == nil {
		return err
	}

	for i := range users {
		users[i] = visibleName(id, users[i])
	}
	subject := quote(name)
	if label != "" {
		subject = "the label " + quote(label) + " of " + subject
	}

	return wire.Errorf(wire.CodeConflict, "%s is used as a snippet by %s. Publish those without it first.",
		subject, strings.Join(users, ", "))
}

// visibleName returns the name of a template as a message to an identity has it.
func visibleName(id wire.Identity, name string) string {
	if !id.Sees(name) {
		return "a template that this key may not see"
	}
	return quote(name)
}
