package registry

import (
	"context"

	"promptspool/api/wire"
)

// ChangesNamesMax bounds the names in one answer of the change feed. An answer with fewer
// names is complete.
const ChangesNamesMax = 1000

// Store is the database of a server's templates. All methods may be called concurrently.
// Accounts do not see each other.
//
// Errors are *wire.Error where the comment names a code; any other error means that the
// database failed. The caller owns what a method returns.
type Store interface {
	// UpdateTemplate changes one template in one durable transaction, serialised with all
	// others.
	//
	// change edits the current head in place. If there is none it gets a head with only
	// Name and ID, which is newly allotted, from 1 within the account. change may be
	// called more than once, and must not call the store.
	//
	// A version that change returns is stored with number len(t.Versions)+1. The store
	// sets its ID (from 1 within the account), TemplateID and Number, and appends its
	// Stamp to t.Versions before it stores the head, so labels may point to that number
	// already.
	//
	// If changed is false, nothing is written. Otherwise the account's revision goes up
	// by one, the head's Revision is set to it, and TemplateChanges reports the name. An
	// error of change is returned as it is, and nothing is written. The head returned is
	// the one after the call.
	UpdateTemplate(
		ctx context.Context, account, name string,
		change func(t *wire.Template) (v *wire.Version, changed bool, err error),
	) (wire.Template, error)

	// Template returns a head by name or, if no template has that name, by decimal id. A
	// deleted template is returned with DeletedAt set. wire.CodeNotFound if there is
	// none.
	Template(ctx context.Context, account, ident string) (wire.Template, error)

	// TemplateName returns the name of the template with this id. wire.CodeNotFound if
	// there is none.
	TemplateName(ctx context.Context, account string, id int64) (string, error)

	// TemplateVersion returns one version of the template with this id. wire.CodeNotFound
	// if there is none.
	TemplateVersion(ctx context.Context, account string, id int64, number int) (wire.Version, error)

	// Templates returns all heads of an account, in any order.
	Templates(ctx context.Context, account string) ([]wire.Template, error)

	// TemplateChanges returns the names that changed after revision since, each once,
	// oldest change first.
	//
	// It returns at most ChangesNamesMax names; Revision is then that of the last one,
	// otherwise the account's current one. A since above the current revision gives Reset
	// and the current revision, without names.
	TemplateChanges(ctx context.Context, account string, since uint64) (wire.Changes, error)
}

// Watcher is a Store that other processes write to as well.
type Watcher interface {
	// Watch calls wake with each account whose templates another process may have
	// changed, soon after the change, until ctx ends.
	//
	// waited returns the accounts that have waiters; changes of others need no wake. wake
	// may be called without a change, at any time until Watch returns. An error ends the
	// watching for good.
	Watch(ctx context.Context, waited func() []string, wake func(account string)) error
}
