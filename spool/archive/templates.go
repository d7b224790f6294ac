package archive

import (
	"strconv"

	"promptspool/api/wire"
)

// TemplateChangesMax bounds the names in one answer of a
// registry's Store.TemplateChanges.
const TemplateChangesMax = 1000

// Registry is what an account's templates were given last.
type Registry struct {
	Template int64  `json:"template"`
	Version  int64  `json:"version"`
	Revision uint64 `json:"revision"`
}

// NewTemplate gives a template that does not exist yet its id.
func (r *Registry) NewTemplate(name string) wire.Template {
	r.Template++
	return wire.Template{ID: r.Template, Name: name}
}

// Change gives a head its next revision. A new version, unless it is nil, gets its ids
// and its line in the head.
func (r *Registry) Change(head *wire.Template, v *wire.Version) {
	if v != nil {
		r.Version++
		v.ID, v.TemplateID, v.Number = r.Version, head.ID, len(head.Versions)+1
		head.Versions = append(head.Versions, wire.Stamp{
			ID: v.ID, At: v.CreatedAt, Message: v.CommitMessage, Author: v.Author,
		})
	}

	// Also without a new version: caches learn of a moved label by the revision.
	r.Revision++
	head.Revision = r.Revision
}

// TemplateID reads an id in the one form in which it is written: "+1" and "01" are names.
func TemplateID(ident string) (int64, bool) {
	id, err := strconv.ParseInt(ident, 10, 64)
	return id, err == nil && strconv.FormatInt(id, 10) == ident
}

// ErrNoTemplate is for a template that is asked for by its name or its id.
func ErrNoTemplate(ident string) *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no template %.200q.", ident)
}

// ErrNoTemplateID is for a template that is asked for by its id alone.
func ErrNoTemplateID(id int64) *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no template with the id %d.", id)
}

// ErrNoVersion is for a version that a template does not have.
func ErrNoVersion(id int64, number int) *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "The template %d has no version %d.", id, number)
}
