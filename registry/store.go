package registry

import (
	"context"

	"promptspool/api/wire"
)

// ChangesNamesMax is how many names one answer of the change feed holds at most. An answer with fewer is up to date.
const ChangesNamesMax = 1000

// Store is the database of a server's templates. Every method may be called at the same time as any other. Accounts do not
// see each other. Errors are *wire.Error where the comment names a code; any other error means that the database failed.
// What a method returns belongs to the caller.
type Store interface {
	// UpdateTemplate changes one template in one durable transaction, serialised with all others. change gets the present
	// head to edit in place, or one with only Name and ID (newly allotted, from 1 within the account) when there is none. It
	// may be called more than once, and must not call the store.
	//
	// A version that change returns is stored with number len(t.Versions)+1; the store sets its ID (from 1 within the
	// account), TemplateID and Number and appends its Stamp to t.Versions before it stores the head, so labels may point
	// to that number already. With changed false nothing is written. Otherwise the account's revision goes up by one,
	// the head's Revision is set to it, and TemplateChanges tells the name. An error of change is returned as it is, and
	// nothing is written. The head returned is the one after the call.
	UpdateTemplate(ctx context.Context, account, name string, change func(t *wire.Template) (v *wire.Version, changed bool, err error)) (wire.Template, error)

	// Template returns a head by name or, if no template is called so, by decimal id. A deleted one is returned, with
	// DeletedAt set. wire.CodeNotFound if there is none.
	Template(ctx context.Context, account, ident string) (wire.Template, error)

	// TemplateName returns the name of the template with this id. wire.CodeNotFound if there is none.
	TemplateName(ctx context.Context, account string, id int64) (string, error)

	// TemplateVersion returns one version of the template with this id. wire.CodeNotFound if there is none.
	TemplateVersion(ctx context.Context, account string, id int64, number int) (wire.Version, error)

	// Templates returns one page of the heads that q matches, in its order, and how many match in all. Page and PerPage are at
	// least 1.
	Templates(ctx context.Context, account string, q wire.TemplateListQuery) ([]wire.Template, int, error)

	// TemplateChanges tells the names that changed after revision since, each once, oldest change first, at most ChangesNamesMax; then
	// its Revision is that of the last one told, else the account's present one. A since above the present one gives Reset
	// and the present revision, without names.
	TemplateChanges(ctx context.Context, account string, since uint64) (wire.Changes, error)
}

// Watcher is a Store that other processes write to as well.
type Watcher interface {
	// Watch calls wake with each account whose templates another process may have changed, soon after it did, until ctx ends. waited
	// gives the accounts that somebody waits for; others need not be told. wake may be called for nothing, at any time, but not after Watch returned.
	// An error ends the watching for good.
	Watch(ctx context.Context, waited func() []string, wake func(account string)) error
}
