package registry

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

// Labels lists the labels of a template, and their history. Errors as Fetch.
func (r *Registry) Labels(ctx context.Context, id wire.Identity, ident string) (wire.Labels, error) {
	head, err := r.head(ctx, id.Account, ident)
	if err != nil {
		return wire.Labels{}, err
	}
	out := wire.Labels{Success: true, Labels: []wire.ReleaseLabel{}, Moves: nonNil(head.Moves)}
	for _, l := range head.Labels {
		out.Labels = append(out.Labels, wire.ReleaseLabel{ID: l.ID, Name: l.Name, Version: l.Version, VersionID: head.Versions[l.Version-1].ID})
	}
	return out, nil
}

// CreateLabel points a label to a version of the template with an id or else a name; one that is there moves. by is who does it. The
// step is kept in the history. wire.CodeInvalid if there is no such version, or too many labels.
func (r *Registry) CreateLabel(ctx context.Context, id wire.Identity, ident string, w wire.LabelWrite, by string) (wire.PlacedLabel, error) {
	name, err := r.nameByID(ctx, id.Account, ident)
	if err != nil {
		return wire.PlacedLabel{}, err
	}
	return r.place(ctx, id, name, by, func(*wire.Template) (wire.LabelWrite, error) { return w, nil })
}

// nameByID finds the name of a template that is not archived by its id, or else by its name: on routes that take ids, a template that
// is called "17" does not take the place of the one with this id.
func (r *Registry) nameByID(ctx context.Context, account, ident string) (string, error) {
	if number, err := strconv.ParseInt(ident, 10, 64); err == nil {
		name, err := r.store.TemplateName(ctx, account, number)
		if err == nil {
			ident = name
		} else if !wire.IsCode(err, wire.CodeNotFound) {
			return "", err
		}
	}
	head, err := r.head(ctx, account, ident)
	return head.Name, err
}

// MoveLabel points a label, by its id, to another version. wire.CodeNotFound if there is no such label.
func (r *Registry) MoveLabel(ctx context.Context, id wire.Identity, label int64, version int, by string) (wire.PlacedLabel, error) {
	name, err := r.store.TemplateName(ctx, id.Account, wire.TemplateOfLabel(label))
	if err != nil {
		return wire.PlacedLabel{}, noLabel(label, err)
	}
	return r.place(ctx, id, name, by, func(t *wire.Template) (wire.LabelWrite, error) {
		l, err := labelByID(t, label)
		return wire.LabelWrite{Name: l.Name, Version: version}, err
	})
}

// place moves the label that which names within the template.
func (r *Registry) place(ctx context.Context, id wire.Identity, name, by string, which func(t *wire.Template) (wire.LabelWrite, error)) (wire.PlacedLabel, error) {
	var w wire.LabelWrite
	head, err := r.update(ctx, id.Account, name, func(t *wire.Template, now time.Time) (changed bool, err error) {
		if w, err = which(t); err != nil {
			return false, err
		}
		if w.Version < 1 || w.Version > t.Latest() {
			reason := fmt.Sprintf("is %d, which does not exist; the latest version of %s is %d", w.Version, quote(t.Name), t.Latest())
			return false, wire.Invalid(wire.FieldError{Field: "prompt_version_number", Reason: reason})
		}
		changed = move(t, w.Name, w.Version, now, orKey(by, id))
		return changed, tooManyLabels(t)
	})
	if err != nil {
		return wire.PlacedLabel{}, err
	}
	return placed(&head, w.Name), nil
}

// DeleteLabel takes a label away, by its id. wire.CodeNotFound if there is no such label; wire.CodeConflict if other templates
// refer to it.
func (r *Registry) DeleteLabel(ctx context.Context, id wire.Identity, label int64, by string) error {
	name, err := r.store.TemplateName(ctx, id.Account, wire.TemplateOfLabel(label))
	if err != nil {
		return noLabel(label, err)
	}
	head, err := r.head(ctx, id.Account, name)
	if err != nil {
		return err
	}
	l, err := labelByID(&head, label)
	if err != nil {
		return err
	}
	if err := r.unused(ctx, id.Account, name, l.Name); err != nil {
		return err
	}
	_, err = r.update(ctx, id.Account, name, func(t *wire.Template, now time.Time) (bool, error) {
		l, err := labelByID(t, label)
		if err != nil {
			return false, err
		}
		t.Labels = slices.DeleteFunc(t.Labels, func(other wire.Label) bool { return other.ID == label })
		addMove(t, wire.Move{Label: l.Name, At: now, By: orKey(by, id)})
		return true, nil
	})
	return err
}

// Archive takes a template out of use: it is not found any more, and its versions and history stay. Restore, or publishing
// it again, brings it back. wire.CodeConflict if other templates refer to it.
func (r *Registry) Archive(ctx context.Context, id wire.Identity, ident string) error {
	head, err := r.head(ctx, id.Account, ident)
	if err != nil {
		return err
	}
	if err := r.unused(ctx, id.Account, head.Name, ""); err != nil {
		return err
	}
	_, err = r.update(ctx, id.Account, head.Name, func(t *wire.Template, now time.Time) (bool, error) {
		if t.DeletedAt != nil {
			return false, nil
		}
		t.DeletedAt = &now
		return true, nil
	})
	return err
}

// Restore brings an archived template back; one that is in use stays so. wire.CodeNotFound if there never was such a template.
func (r *Registry) Restore(ctx context.Context, id wire.Identity, ident string) error {
	head, err := r.store.Template(ctx, id.Account, ident)
	if err != nil {
		return err
	}
	_, err = r.update(ctx, id.Account, head.Name, func(t *wire.Template, _ time.Time) (bool, error) {
		changed := t.DeletedAt != nil
		t.DeletedAt = nil
		return changed, nil
	})
	return err
}

// update changes a template that exists, in one durable step, and wakes who waits for changes. now is never before the template's last change.
func (r *Registry) update(ctx context.Context, account, name string, change func(t *wire.Template, now time.Time) (bool, error)) (wire.Template, error) {
	changed := false
	head, err := r.store.UpdateTemplate(ctx, account, name, func(t *wire.Template) (*wire.Version, bool, error) {
		now := r.now().UTC()
		if now.Before(t.UpdatedAt) {
			now = t.UpdatedAt // history is looked up by time: a clock that was set back must not reorder it
		}
		var err error
		if changed, err = change(t, now); err != nil || !changed {
			return nil, false, err
		}
		t.UpdatedAt = now
		return nil, true, nil
	})
	if err == nil && changed {
		r.waiters.wake(account)
	}
	return head, err
}

func labelByID(t *wire.Template, id int64) (wire.Label, error) {
	for _, l := range t.Labels {
		if l.ID == id {
			return l, nil
		}
	}
	return wire.Label{}, noLabel(id, nil)
}

// noLabel is a 404 for a label, unless the store could not answer.
func noLabel(id int64, err error) error {
	if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
		return err
	}
	return wire.Errorf(wire.CodeNotFound, "There is no label with the id %d. GET /prompt-templates/{name}/labels lists a template's labels.", id)
}

// placed tells where a label is.
func placed(t *wire.Template, name string) wire.PlacedLabel {
	i, _ := slices.BinarySearchFunc(t.Labels, name, func(l wire.Label, name string) int { return strings.Compare(l.Name, name) })
	l := t.Labels[i]
	p := wire.PlacedLabel{Success: true, ID: l.ID, Name: l.Name, PromptID: t.ID, Version: l.Version, VersionID: t.Versions[l.Version-1].ID}
	for _, m := range t.Moves {
		switch {
		case m.Label != name:
		case m.Version == 0: // it was taken away; what came later is another label
			p.CreatedAt = time.Time{}
		case p.CreatedAt.IsZero():
			p.CreatedAt = m.At
		}
	}
	return p
}

// orKey is who did something: the one who is named, else the key.
func orKey(by string, id wire.Identity) string {
	if by != "" {
		return by
	}
	return id.KeyID
}
