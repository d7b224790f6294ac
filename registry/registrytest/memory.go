package registrytest

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"

	"promptspool/api/wire"
	"promptspool/registry"
)

// Memory is a registry.Store without a disk, for tests of what uses a store. Safe for
// concurrent use.
type Memory struct {
	mu       sync.Mutex
	accounts map[string]*account
}

type account struct {
	revision   uint64
	templateID int64 // the last one allotted
	versionID  int64
	heads      map[string]wire.Template // by name
	versions   map[versionKey]wire.Version
}

type versionKey struct {
	template int64
	number   int
}

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{accounts: make(map[string]*account)} }

// accountLocked finds an account, or makes it. mu must be held.
func (m *Memory) accountLocked(name string) *account {
	a := m.accounts[name]
	if a == nil {
		a = &account{
			heads:    make(map[string]wire.Template),
			versions: make(map[versionKey]wire.Version),
		}
		m.accounts[name] = a
	}

	return a
}

// UpdateTemplate implements registry.Store.
func (m *Memory) UpdateTemplate(
	ctx context.Context, accountID, name string,
	change func(t *wire.Template) (*wire.Version, bool, error),
) (wire.Template, error) {
	if err := ctx.Err(); err != nil {
		return wire.Template{}, err
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	a := m.accountLocked(accountID)
	t, found := a.heads[name]
	t = clone(t)
	if !found {
		t = wire.Template{ID: a.templateID + 1, Name: name}
	}

	v, changed, err := change(&t)
	if err != nil {
		return wire.Template{}, err
	}
	if !changed {
		return t, nil
	}

	if v != nil {
		a.versionID++
		v.ID, v.TemplateID, v.Number = a.versionID, t.ID, len(t.Versions)+1
		t.Versions = append(t.Versions, wire.Stamp{
			ID:      v.ID,
			At:      v.CreatedAt,
			Message: v.CommitMessage,
			Author:  v.Author,
		})
		a.versions[versionKey{t.ID, v.Number}] = cloneVersion(*v)
	}
	if !found {
		a.templateID++
	}
	a.revision++
	t.Revision = a.revision
	a.heads[name] = clone(t)

	return t, nil
}

// Template implements registry.Store.
func (m *Memory) Template(_ context.Context, accountID, ident string) (wire.Template, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	a := m.accountLocked(accountID)
	if t, ok := a.heads[ident]; ok {
		return clone(t), nil
	}
	for _, t := range a.heads {
		if strconv.FormatInt(t.ID, 10) == ident {
			return clone(t), nil
		}
	}

	return wire.Template{}, wire.Errorf(wire.CodeNotFound, "There is no template %q.", ident)
}

// TemplateName implements registry.Store.
func (m *Memory) TemplateName(_ context.Context, accountID string, id int64) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	for _, t := range m.accountLocked(accountID).heads {
		if t.ID == id {
			return t.Name, nil
		}
	}

	return "", wire.Errorf(wire.CodeNotFound, "There is no template with the id %d.", id)
}

// TemplateVersion implements registry.Store.
func (m *Memory) TemplateVersion(
	_ context.Context, accountID string, id int64, number int,
) (wire.Version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	v, ok := m.accountLocked(accountID).versions[versionKey{id, number}]
	if !ok {
		return v, wire.Errorf(wire.CodeNotFound, "There is no version %d of template %d.", number, id)
	}

	return cloneVersion(v), nil
}

// Templates implements registry.Store.
func (m *Memory) Templates(
	_ context.Context, accountID string, q wire.TemplateListQuery,
) ([]wire.Template, int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	var found []wire.Template
	for _, t := range m.accountLocked(accountID).heads {
		if q.Match(&t) {
			found = append(found, clone(t))
		}
	}
	page, total := q.PageOf(found)

	return page, total, nil
}

// TemplateChanges implements registry.Store.
func (m *Memory) TemplateChanges(_ context.Context, accountID string, since uint64) (wire.Changes, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	a := m.accountLocked(accountID)
	c := wire.Changes{
		Success:  true,
		Revision: a.revision,
		Reset:    since > a.revision,
		Names:    []string{},
	}
	if c.Reset {
		return c, nil
	}

	var changed []wire.Template
	for _, t := range a.heads {
		if t.Revision > since {
			changed = append(changed, t)
		}
	}
	byRevision := func(x, y wire.Template) int { return int(x.Revision) - int(y.Revision) }
	slices.SortFunc(changed, byRevision)

	// A page that is full says up to which revision it is complete.
	for i, t := range changed {
		if i == registry.ChangesNamesMax {
			c.Revision = changed[i-1].Revision
			break
		}
		c.Names = append(c.Names, t.Name)
	}

	return c, nil
}

func clone(t wire.Template) wire.Template {
	t.Tags = slices.Clone(t.Tags)
	t.Labels = slices.Clone(t.Labels)
	t.Moves = slices.Clone(t.Moves)
	t.Versions = slices.Clone(t.Versions)

	return t
}

func cloneVersion(v wire.Version) wire.Version {
	v.Blueprint, v.Metadata = bytes.Clone(v.Blueprint), bytes.Clone(v.Metadata)
	return v
}
