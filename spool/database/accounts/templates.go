package accounts

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net/url"
	"strconv"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// Kinds of an account's values about templates. Numbers in names are big-endian.
const (
	templates     keyed.Kind = "templates"         // wire.Template, a head, by name
	templateNames keyed.Kind = "template names"    // the name by id
	versions      keyed.Kind = "template versions" // wire.Version by template and number
	// The feed of changes has one entry for each template: it grows with their number, not
	// with their changes.
	changes    keyed.Kind = "template changes" // the name by the revision that changed it last
	registries keyed.Kind = "registries"       // registry; one
)

// registry is what an account's templates were given last.
type registry struct {
	Template int64  `json:"template"`
	Version  int64  `json:"version"`
	Revision uint64 `json:"revision"`
}

func registryKey(account string) keyed.Key { return keyed.Key{Kind: registries, Account: account} }

func templateKey(account, name string) keyed.Key {
	return keyed.Key{Kind: templates, Account: account, Name: name}
}

func numberKey(kind keyed.Kind, account string, number uint64) keyed.Key {
	name := binary.BigEndian.AppendUint64(nil, number)
	return keyed.Key{Kind: kind, Account: account, Name: string(name)}
}

func versionKey(account string, template int64, number int) keyed.Key {
	key := numberKey(versions, account, uint64(template))
	key.Name += string(binary.BigEndian.AppendUint32(nil, uint32(number)))
	return key
}

// UpdateTemplate changes one template in one durable transaction; see registry.Store.
func (s *Store) UpdateTemplate(
	ctx context.Context, account, name string, change func(t *wire.Template) (v *wire.Version, changed bool, err error),
) (wire.Template, error) {
	var head wire.Template
	// The error of change is returned as it is.
	var refused error

	// A change that ran twice might publish twice, so it is not tried again if it was perhaps
	// committed. Changes of an account are committed one after the other, and so their
	// revisions in order: a reader of the feed misses none.
	err := s.rows.Change(ctx, account, false, func(tx *keyed.Tx) error {
		last, stored, err := loadTemplate(ctx, tx, account, name)
		if err != nil {
			return err
		}
		head = stored

		before, moves := head.Revision, len(head.Moves)
		version, changed, err := change(&head)
		refused = err
		if err != nil || !changed {
			return nil
		}
		return cmp.Or(
			last.publish(tx, account, &head, version, before),
			s.notifyTemplate(tx, account, &head, version, head.Moves[moves:]))
	})
	if err := cmp.Or(refused, err); err != nil {
		return wire.Template{}, err
	}
	return head, nil
}

// notifyTemplate tells the project of a new version, unless it is nil, and of labels that were moved.
func (s *Store) notifyTemplate(
	tx *keyed.Tx, account string, head *wire.Template, v *wire.Version, moves []wire.Move,
) error {
	notify := func(kind, label string, version int, title, text string) error {
		labels := map[string]string{"template": head.Name, "version": strconv.Itoa(version)}
		if label != "" {
			labels["label"] = label
		}
		return Notify(tx, account, s.now(), wire.Notice{
			Type:   kind,
			Title:  title,
			Text:   text,
			URL:    "/template?name=" + url.QueryEscape(head.Name),
			Labels: labels,
		})
	}

	var err error
	if v != nil {
		err = notify(wire.NoticeTemplatePublished, "", v.Number,
			fmt.Sprintf("%s has version %d", head.Name, v.Number), v.CommitMessage)
	}
	for _, m := range moves {
		title := fmt.Sprintf("%s of %s points to version %d", m.Label, head.Name, m.Version)
		if m.Version == 0 {
			title = m.Label + " of " + head.Name + " was removed"
		}
		err = cmp.Or(err, notify(wire.NoticeLabelMoved, m.Label, m.Version, title, ""))
	}
	return err
}

// loadTemplate reads the head, or begins a new one, and what was given last.
func loadTemplate(
	ctx context.Context, tx *keyed.Tx, account, name string,
) (last registry, head wire.Template, err error) {
	keys := []keyed.Key{registryKey(account), templateKey(account, name)}
	values, err := tx.Get(ctx, keys...)
	if err == nil && values[0] != nil {
		err = keyed.Entry{Key: keys[0], Value: values[0]}.Decode(&last)
	}

	switch {
	case err != nil:
		return last, head, err
	case values[1] == nil:
		// Not stored yet: publishing may still be refused.
		last.Template++
		return last, wire.Template{ID: last.Template, Name: name}, nil
	}
	return last, head, keyed.Entry{Key: keys[1], Value: values[1]}.Decode(&head)
}

// publish writes a head with its next revision and, unless it is nil, a new version. before is
// the head's revision so far; 0 if it is new.
func (r *registry) publish(
	tx *keyed.Tx, account string, head *wire.Template, v *wire.Version, before uint64,
) error {
	if v != nil {
		r.Version++
		v.ID, v.TemplateID, v.Number = r.Version, head.ID, len(head.Versions)+1
		head.Versions = append(head.Versions, wire.Stamp{
			ID: v.ID, At: v.CreatedAt, Message: v.CommitMessage, Author: v.Author,
		})
		if err := tx.Put(versionKey(account, v.TemplateID, v.Number), v); err != nil {
			return err
		}
	}

	// Also without a new version: caches learn of a moved label by the revision.
	r.Revision++
	head.Revision = r.Revision
	if before > 0 {
		tx.Delete(numberKey(changes, account, before))
	} else if err := tx.Put(numberKey(templateNames, account, uint64(head.ID)), head.Name); err != nil {
		return err
	}
	return cmp.Or(
		tx.Put(numberKey(changes, account, r.Revision), head.Name),
		tx.Put(templateKey(account, head.Name), head),
		tx.Put(registryKey(account), r),
	)
}

// Template returns a head by name, or else by its id in decimal; see registry.Store.
func (s *Store) Template(ctx context.Context, account, ident string) (wire.Template, error) {
	none := func() *wire.Error { return wire.Errorf(wire.CodeNotFound, "There is no template %.200q.", ident) }
	keys := []keyed.Key{templateKey(account, ident)}
	// Ids have one form: "+1" and "01" are names.
	id, err := strconv.ParseInt(ident, 10, 64)
	isID := err == nil && strconv.FormatInt(id, 10) == ident
	if isID {
		keys = append(keys, numberKey(templateNames, account, uint64(id)))
	}

	values, err := s.rows.Get(ctx, keys...)
	switch {
	case err != nil:
		return wire.Template{}, err
	// A name may look like an id, and comes first.
	case values[0] != nil:
		var head wire.Template
		return head, keyed.Entry{Key: keys[0], Value: values[0]}.Decode(&head)
	case !isID || values[1] == nil:
		return wire.Template{}, none()
	}

	var name string
	if err := (keyed.Entry{Key: keys[1], Value: values[1]}).Decode(&name); err != nil {
		return wire.Template{}, err
	}
	return get[wire.Template](ctx, s.rows, templateKey(account, name), none)
}

// TemplateName returns the name of the template with an id; see registry.Store.
func (s *Store) TemplateName(ctx context.Context, account string, id int64) (string, error) {
	return get[string](ctx, s.rows, numberKey(templateNames, account, uint64(id)), func() *wire.Error {
		return wire.Errorf(wire.CodeNotFound, "There is no template with the id %d.", id)
	})
}

// TemplateVersion returns one version; see registry.Store.
func (s *Store) TemplateVersion(ctx context.Context, account string, id int64, number int) (wire.Version, error) {
	return get[wire.Version](ctx, s.rows, versionKey(account, id, number), func() *wire.Error {
		return wire.Errorf(wire.CodeNotFound, "The template %d has no version %d.", id, number)
	})
}

// Templates returns all heads of an account; see registry.Store.
func (s *Store) Templates(ctx context.Context, account string) ([]wire.Template, error) {
	return named[wire.Template](ctx, s.rows, templates, account)
}

// TemplateChangesMax bounds the names in one answer of TemplateChanges.
const TemplateChangesMax = 1000

// TemplateChanges lists the templates changed after a revision; see registry.Store.
func (s *Store) TemplateChanges(
	ctx context.Context, account string, since uint64,
) (answer wire.Changes, err error) {
	answer = wire.Changes{Success: true, Names: []string{}}
	var page []keyed.Entry
	if since < math.MaxUint64 {
		page, err = s.rows.Scan(ctx, numberKey(changes, account, since+1), 0, TemplateChangesMax)
	}
	for _, e := range page {
		name := ""
		if err == nil {
			err = e.Decode(&name)
		}
		// The last one's: the feed always has the account's last change.
		answer.Names, answer.Revision = append(answer.Names, name), binary.BigEndian.Uint64([]byte(e.Name))
	}

	if err == nil && len(page) == 0 {
		var last registry
		last, _, err = keyed.Load[registry](ctx, s.rows, registryKey(account))
		// Templates published since the feed was read are not listed, and so not
		// announced yet.
		answer.Revision, answer.Reset = min(since, last.Revision), since > last.Revision
	}
	return answer, err
}

// Revisions returns the revisions of accounts, in their order. They grow with each change of
// a template.
func (s *Store) Revisions(ctx context.Context, of []string) ([]uint64, error) {
	keys := make([]keyed.Key, len(of))
	for i, account := range of {
		keys[i] = registryKey(account)
	}
	stored, err := keyed.LoadAll[registry](ctx, s.rows, keys...)

	revisions := make([]uint64, len(stored))
	for i, r := range stored {
		if r != nil {
			revisions[i] = r.Revision
		}
	}
	return revisions, err
}

// Check proves that templates, their ids, versions and changes belong together. Its error is
// the first fault. Publishing to an account waits while that is checked.
func (s *Store) Check(ctx context.Context) error {
	return keyed.EachOfAll(ctx, s.rows, registries, func(of keyed.Key, _ *registry) error {
		return s.rows.Change(ctx, of.Account, true, func(tx *keyed.Tx) error {
			return checkTemplates(ctx, tx, of.Account)
		})
	})
}

func checkTemplates(ctx context.Context, tx *keyed.Tx, account string) error {
	heads, err := keyed.List[wire.Template](ctx, tx, templateKey(account, ""))
	if err != nil {
		return err
	}

	// Each head leads to what else there must be. Of what is found, nothing may be left over.
	names, ids := map[keyed.Key]string{}, map[keyed.Key]int64{}
	for _, head := range heads {
		names[numberKey(templateNames, account, uint64(head.Of.ID))] = head.Of.Name
		names[numberKey(changes, account, head.Of.Revision)] = head.Of.Name
		for i, stamp := range head.Of.Versions {
			ids[versionKey(account, head.Of.ID, i+1)] = stamp.ID
		}
	}

	for _, kind := range []keyed.Kind{templateNames, changes} {
		if err := agree(ctx, tx, keyed.Key{Kind: kind, Account: account}, names,
			func(name *string) string { return *name }); err != nil {
			return err
		}
	}
	return agree(ctx, tx, keyed.Key{Kind: versions, Account: account}, ids,
		func(v *wire.Version) int64 { return v.ID })
}

// agree checks the values of a kind of an account: of must make of each what is wanted.
func agree[T any, V comparable](
	ctx context.Context, tx *keyed.Tx, kind keyed.Key, wanted map[keyed.Key]V, of func(*T) V,
) error {
	err := keyed.Each(ctx, tx, kind, func(key keyed.Key, v *T) error {
		want, found := wanted[key]
		if !found || want != of(v) {
			return fmt.Errorf("project %q: %s %q holds %v, and its template says %v",
				kind.Account, kind.Kind, key.Name, of(v), want)
		}
		delete(wanted, key)
		return nil
	})
	for key := range wanted {
		if err == nil && key.Kind == kind.Kind {
			err = fmt.Errorf("project %q: %s %q is missing", kind.Account, key.Kind, key.Name)
		}
	}
	return err
}
