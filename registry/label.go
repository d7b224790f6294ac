package registry

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"promptspool/api/wire"
)

// Labels lists the labels of a template, and their history. Errors as Fetch.
func (r *Registry) Labels(ctx context.Context, id wire.Identity, ident string) (wire.Labels, error) {
	head, err := r.head(ctx, id, ident)
	if err != nil {
		return wire.Labels{}, err
	}

	out := wire.Labels{Success: true, Labels: []wire.ReleaseLabel{}, Moves: nonNil(head.Moves)}
	for _, l := range head.Labels {
		out.Labels = append(out.Labels, wire.ReleaseLabel{
			ID:        l.ID,
			Name:      l.Name,
			Version:   l.Version,
			VersionID: head.Versions[l.Version-1].ID,
		})
	}

	return out, nil
}

// Moved returns the moves of labels from one version to another since a time. They are of all templates
// that the identity sees, in order of time.
func (r *Registry) Moved(ctx context.Context, id wire.Identity, since time.Time) ([]wire.TemplateMove, error) {
	heads, err := r.store.Templates(ctx, id.Account)
	if err != nil {
		return nil, err
	}

	var moved []wire.TemplateMove
	for _, head := range heads {
		for _, m := range head.Moved() {
			if !m.At.Before(since) && id.Sees(head.Name) {
				moved = append(moved, m)
			}
		}
	}
	slices.SortStableFunc(moved, func(a, b wire.TemplateMove) int { return a.At.Compare(b.At) })

	return moved, nil
}

// CreateLabel points a label to a version of the template with this id, or else this
// name. An existing label moves. by names who does it; the move is recorded.
//
// wire.CodeInvalid if there is no such version, or if there are too many labels.
func (r *Registry) CreateLabel(
	ctx context.Context, id wire.Identity, ident string, w wire.LabelWrite, by string,
) (wire.PlacedLabel, error) {
	name, err := r.nameByID(ctx, id, ident)
	if err != nil {
		return wire.PlacedLabel{}, err
	}

	return r.place(ctx, id, name, by, func(*wire.Template) (wire.LabelWrite, error) { return w, nil })
}

// nameByID finds the name of a template in use by its id, or else by its name. On routes
// that take ids, a template called "17" must not hide the one with that id.
func (r *Registry) nameByID(ctx context.Context, id wire.Identity, ident string) (string, error) {
	if number, err := strconv.ParseInt(ident, 10, 64); err == nil {
		name, err := r.store.TemplateName(ctx, id.Account, number)
		switch {
		case err == nil && id.Sees(name):
			ident = name
		case err != nil && !wire.IsCode(err, wire.CodeNotFound):
			return "", err
		}
	}

	head, err := r.head(ctx, id, ident)

	return head.Name, err
}

// MoveLabel points a label, by its id, to another version. wire.CodeNotFound if there is
// no such label.
func (r *Registry) MoveLabel(
	ctx context.Context, id wire.Identity, label int64, version int, by string,
) (wire.PlacedLabel, error) {
	name, err := r.nameByLabel(ctx, id, label)
	if err != nil {
		return wire.PlacedLabel{}, err
	}

	return r.place(ctx, id, name, by, func(t *wire.Template) (wire.LabelWrite, error) {
		l, err := labelByID(t, label)
		return wire.LabelWrite{Name: l.Name, Version: version}, err
	})
}

// nameByLabel finds the name of the template that has a label, by the label's id.
func (r *Registry) nameByLabel(ctx context.Context, id wire.Identity, label int64) (string, error) {
	name, err := r.store.TemplateName(ctx, id.Account, wire.TemplateOfLabel(label))
	if err != nil || !id.Sees(name) {
		return "", noLabel(label, err)
	}
	return name, nil
}

// place points a label to a version that exists. which picks both, within the transaction.
func (r *Registry) place(
	ctx context.Context, id wire.Identity, name, by string,
	which func(t *wire.Template) (wire.LabelWrite, error),
) (wire.PlacedLabel, error) {
	existing := func(t *wire.Template) (wire.LabelWrite, error) {
		w, err := which(t)
		// Within the transaction: the version may be published by a concurrent request.
		if err == nil && (w.Version < 1 || w.Version > t.Latest()) {
			err = wire.Invalid(wire.FieldError{
				Field: "prompt_version_number",
				Reason: fmt.Sprintf("is %d, which does not exist; the latest version of %s is %d",
					w.Version, quote(t.Name), t.Latest()),
			})
		}

		return w, err
	}
	head, m, err := r.relabel(ctx, id, name, by, existing)
	if err != nil {
		return wire.PlacedLabel{}, err
	}

	out := placed(&head, m.label)
	out.Was = m.was

	return out, nil
}

// relabel moves a label to the version that which picks, within the transaction, or deletes it
// if that is 0. It notes what has changed.
func (r *Registry) relabel(
	ctx context.Context, id wire.Identity, name, by string,
	which func(t *wire.Template) (wire.LabelWrite, error),
) (head wire.Template, m move, err error) {
	head, err = r.update(ctx, id.Account, name, func(t *wire.Template, now time.Time) (bool, error) {
		w, err := which(t)
		if err != nil {
			return false, err
		}
		m = moveLabel(t, w.Name, w.Version, now, orKey(by, id))

		return m.was != m.is, checkLabelCount(t)
	})
	if err != nil || m.was == m.is {
		return head, m, err
	}

	action := "move label"
	if m.is == 0 {
		action = "delete label"
	}
	r.note(ctx, id, by, action, name, m.String())

	return head, m, nil
}

// DeleteLabel deletes a label, by its id. wire.CodeNotFound if there is no such label;
// wire.CodeConflict if other templates refer to it.
func (r *Registry) DeleteLabel(ctx context.Context, id wire.Identity, label int64, by string) error {
	name, err := r.nameByLabel(ctx, id, label)
	if err != nil {
		return err
	}
	head, err := r.head(ctx, id, name)
	if err != nil {
		return err
	}
	l, err := labelByID(&head, label)
	if err != nil {
		return err
	}
	// Not within the transaction, which must not read other templates: a reference that
	// is published at the same moment is reported by that template's findings.
	if err := r.checkUnused(ctx, id, name, l.Name); err != nil {
		return err
	}

	_, _, err = r.relabel(ctx, id, name, by, func(t *wire.Template) (wire.LabelWrite, error) {
		// Again: it may be gone since.
		l, err := labelByID(t, label)
		return wire.LabelWrite{Name: l.Name}, err
	})

	return err
}

// Archive takes a template out of use: apps no longer find it, while its versions and
// history stay. Restore, or publishing it again, brings it back. wire.CodeConflict if
// other templates refer to it. by is who does it.
func (r *Registry) Archive(ctx context.Context, id wire.Identity, ident, by string) error {
	head, err := r.head(ctx, id, ident)
	if err != nil {
		return err
	}
	// Apps that fetch those templates would fail.
	if err := r.checkUnused(ctx, id, head.Name, ""); err != nil {
		return err
	}

	archived := false
	_, err = r.update(ctx, id.Account, head.Name, func(t *wire.Template, now time.Time) (bool, error) {
		archived = t.DeletedAt == nil
		if archived {
			t.DeletedAt = &now
		}
		return archived, nil
	})
	if err == nil && archived {
		r.note(ctx, id, by, "archive template", head.Name, "")
	}

	return err
}

// Restore brings an archived template back. A template in use stays so. wire.CodeNotFound
// if there never was such a template. by is who does it.
func (r *Registry) Restore(ctx context.Context, id wire.Identity, ident, by string) error {
	head, err := r.Head(ctx, id, ident)
	if err != nil {
		return err
	}

	restored := false
	_, err = r.update(ctx, id.Account, head.Name, func(t *wire.Template, _ time.Time) (bool, error) {
		// A template that is not deleted stays as it is, and makes no change for caches
		// to fetch.
		restored = t.DeletedAt != nil
		t.DeletedAt = nil
		return restored, nil
	})
	if err == nil && restored {
		r.note(ctx, id, by, "restore template", head.Name, "")
	}

	return err
}

// update changes an existing template in one durable step, and wakes callers that wait
// for changes. The now that change gets is never before the template's last change.
func (r *Registry) update(
	ctx context.Context, account, name string,
	change func(t *wire.Template, now time.Time) (bool, error),
) (wire.Template, error) {
	changed := false
	changeHead := func(t *wire.Template) (_ *wire.Version, _ bool, err error) {
		now := r.notBefore(t.UpdatedAt)
		changed, err = change(t, now)
		if err != nil || !changed {
			return nil, false, err
		}
		t.UpdatedAt = now
		return nil, true, nil
	}
	head, err := r.store.UpdateTemplate(ctx, account, name, changeHead)
	// Not before the change is durable: a caller woken too
	// early would find nothing, and wait on.
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

// noLabel returns the 404 for a label, unless err is a failure of the store.
func noLabel(id int64, err error) error {
	if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
		return err
	}

	return wire.Errorf(wire.CodeNotFound,
		"There is no label with the id %d. GET /prompt-templates/{name}/labels lists a template's labels.",
		id)
}

// placed describes a label and where it points. The label must exist.
func placed(t *wire.Template, name string) wire.PlacedLabel {
	i, _ := findLabel(t.Labels, name)
	l := t.Labels[i]
	p := wire.PlacedLabel{
		Success:   true,
		ID:        l.ID,
		Name:      l.Name,
		PromptID:  t.ID,
		Version:   l.Version,
		VersionID: t.Versions[l.Version-1].ID,
	}

	// It was created by its first move, or by the first after it was last deleted.
	for _, m := range t.Moves {
		switch {
		case m.Label != name:
		// It was deleted: a later one is another label.
		case m.Version == 0:
			p.CreatedAt = time.Time{}
		case p.CreatedAt.IsZero():
			p.CreatedAt = m.At
		}
	}

	return p
}

// orKey returns who did something: the person named, or else the key.
func orKey(by string, id wire.Identity) string {
	if by != "" {
		return by
	}
	return id.KeyID
}
