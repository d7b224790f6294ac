package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
)

// The labels of a template, their history and a line for each version are part of its head, which every
// fetch reads and every change writes anew.
const (
	labelsMax     = 256
	labelsMadeMax = 1<<16 - 1 // labels that a template ever had: their ids have no room for more
	versionsMax   = 10_000
	movesMax      = 10_000 // steps in the history of labels; see addMove
)

// errMoved ends an attempt to publish over a version that came meanwhile.
var errMoved = errors.New("another version was published meanwhile")

// Publish makes p the latest version of its template, which it creates if there is none, and moves p's labels to it, in one
// durable step. If the latest version has the same blueprint and metadata already, no version is made; labels and tags
// apply all the same, and the commit message of the version that is there stays. Version numbers have no gaps, however many publish at
// the same time. What cannot be rendered is published all the same, with warnings. wire.CodeInvalid lists what is wrong with the blueprint or the metadata; wire.CodeConflict says that p's base is
// not the latest version.
func (r *Registry) Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error) {
	expanded, err := r.check(ctx, id, &p)
	if err != nil {
		return wire.Published{}, err
	}
	warnings := expanded.Findings(p.Metadata)

	p.Author = orKey(p.Author, id)
	if p.Metadata == nil {
		p.Metadata = json.RawMessage("null")
	}
	for {
		out, err := r.publish(ctx, id.Account, p)
		if errors.Is(err, errMoved) { // rare, and whoever moved it got on: no bound needed but the caller's patience
			if ctx.Err() != nil {
				return wire.Published{}, ctx.Err()
			}
			continue
		}
		if err == nil {
			r.waiters.wake(id.Account)
			r.log.Info("template published", "account", id.Account, "name", p.Name,
				"version", out.VersionNumber, "labels", p.Labels, "warnings", len(warnings))
			out.Warnings = nonNil(warnings)
		}
		return out, err
	}
}

// publish compares p with the latest version and then writes, unless another version came between.
func (r *Registry) publish(ctx context.Context, account string, p wire.Publish) (wire.Published, error) {
	latest, err := r.latest(ctx, account, p.Name)
	if err != nil {
		return wire.Published{}, err
	}
	if p.Base != nil && *p.Base != latest.Number {
		return wire.Published{}, overtaken(p.Name, latest)
	}
	same := latest.Number > 0 && SameJSON(latest.Blueprint, p.Blueprint) && SameJSON(latest.Metadata, p.Metadata)
	number, commitMessage := latest.Number, latest.CommitMessage
	if !same {
		number, commitMessage = latest.Number+1, p.CommitMessage
	}
	head, err := r.store.UpdateTemplate(ctx, account, p.Name, func(t *wire.Template) (*wire.Version, bool, error) {
		if t.Latest() != latest.Number {
			return nil, false, errMoved
		}
		now := r.now().UTC()
		if now.Before(t.UpdatedAt) {
			now = t.UpdatedAt // history is looked up by time: a clock that was set back must not reorder it
		}
		changed, err := apply(t, p, number, now)
		if err != nil || same && !changed {
			return nil, false, err
		}
		t.UpdatedAt = now
		if same {
			return nil, true, nil
		}
		if t.Latest() >= versionsMax {
			return nil, false, tooManyVersions(p.Name)
		}
		if t.CreatedAt.IsZero() {
			t.CreatedAt = now
		}
		return &wire.Version{Blueprint: p.Blueprint, Metadata: p.Metadata, CommitMessage: p.CommitMessage, Author: p.Author, CreatedAt: now}, true, nil
	})
	if err != nil {
		return wire.Published{}, err
	}

	out := published(&head, number, p.Blueprint, p.Metadata, commitMessage)
	if p.CommitMessage != "" && p.CommitMessage != commitMessage {
		out.Warning = message(fmt.Sprintf("Version %d has this content already, so no version was made and the commit message %s was not kept.", number, quote(p.CommitMessage)))
	}

	return out, nil
}

func tooManyVersions(name string) error {
	return wire.Errorf(wire.CodeConflict, "%s has %d versions, the most that a template can have. Publish under another name.", quote(name), versionsMax)
}

// overtaken says that somebody published meanwhile.
func overtaken(name string, latest wire.Version) error {
	if latest.Number == 0 {
		return wire.Errorf(wire.CodeConflict, "There is no template %s any more.", quote(name))
	}
	return wire.Errorf(wire.CodeConflict, "%s has saved version %d of %s meanwhile. Look at what it changed, then save again to put yours after it.",
		latest.Author, latest.Number, quote(name))
}

// latest is the newest version of the template with exactly this name; the zero Version if there is none.
func (r *Registry) latest(ctx context.Context, account, name string) (wire.Version, error) {
	head, err := r.store.Template(ctx, account, name)
	if wire.IsCode(err, wire.CodeNotFound) || err == nil && (head.Name != name || head.Latest() == 0) {
		return wire.Version{}, nil
	}
	if err != nil {
		return wire.Version{}, err
	}
	v, err := r.store.TemplateVersion(ctx, account, head.ID, head.Latest())
	if err != nil {
		return wire.Version{}, fmt.Errorf("version %d of template %d: %v", head.Latest(), head.ID, err)
	}
	return v, nil
}

// apply moves p's labels to a version, sets its tags, brings a deleted template back, and says whether that changed anything.
func apply(t *wire.Template, p wire.Publish, number int, now time.Time) (changed bool, err error) {
	for _, name := range p.Labels {
		changed = move(t, name, number, now, p.Author) || changed
	}
	if err := tooManyLabels(t); err != nil {
		return false, err
	}
	if p.Tags != nil && !slices.Equal(p.Tags, t.Tags) {
		t.Tags, changed = p.Tags, true
	}
	if t.DeletedAt != nil {
		t.DeletedAt, changed = nil, true
	}
	return changed, nil
}

// tooManyLabels refuses a template that got more labels than it may have.
func tooManyLabels(t *wire.Template) error {
	if len(t.Labels) <= labelsMax && t.LabelsMade <= labelsMadeMax {
		return nil
	}
	return wire.Invalid(wire.FieldError{Field: "release_labels", Reason: fmt.Sprintf("would give the template more than %d labels; move one that is there", labelsMax)})
}

// move points a label to a version and keeps the step in the history. It says whether the label pointed elsewhere.
func move(t *wire.Template, label string, number int, now time.Time, by string) bool {
	i, found := slices.BinarySearchFunc(t.Labels, label, func(l wire.Label, name string) int { return strings.Compare(l.Name, name) })
	switch {
	case !found:
		t.LabelsMade++
		t.Labels = slices.Insert(t.Labels, i, wire.Label{ID: wire.LabelID(t.ID, t.LabelsMade), Name: label, Version: number})
	case t.Labels[i].Version == number:
		return false
	default:
		t.Labels[i].Version = number
	}
	addMove(t, wire.Move{Label: label, Version: number, At: now, By: by})
	return true
}

// addMove adds a step to the history of a template's labels. If there are too many, the oldest that is
// not its label's last goes: where each label is, and since when, stays known.
func addMove(t *wire.Template, m wire.Move) {
	t.Moves = append(t.Moves, m)
	if len(t.Moves) <= movesMax {
		return
	}

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

// SameJSON says whether two texts are the same JSON value, whatever their blanks, escapes and order of members. Numbers are
// compared as written.
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
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
