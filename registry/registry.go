// Package registry keeps prompt templates: named texts with immutable versions 1, 2, ...,
// labels that point to a version, and a feed of what changed.
//
// Registry is the server's side, over a database (Store). Cache is the sidecar's side,
// over its server (Upstream): it keeps every template that was ever fetched on disk,
// follows the feed, and serves what it has while the server is away. Both render with the
// same code, so an app gets the same answer from either.
package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// Config configures a Registry. Store must be set; the zero value of the rest is the
// default.
type Config struct {
	Store  Store
	Logger *slog.Logger     // nil means slog.Default()
	Now    func() time.Time // nil means time.Now
	Audit  wire.AuditLog    // nil: nothing is logged

	// ProviderBaseURLs are sent to the apps that fetch a template for a provider. See
	// SetProviderBaseURLs.
	ProviderBaseURLs wire.ProviderBaseURLs
}

// Registry is the server's side of templates. It reads and publishes in a Store, and
// wakes callers that wait for a change.
//
// Safe for concurrent use. Callers check that an identity may do what it asks for; the
// Registry keeps accounts apart.
type Registry struct {
	store   Store
	log     *slog.Logger
	now     func() time.Time
	audit   wire.AuditLog
	waiters waiters
	revoked atomic.Pointer[map[string]int]        // keys, by account; nil until they were counted
	urls    atomic.Pointer[wire.ProviderBaseURLs] // what it points to never changes
}

// New makes a Registry. It starts no goroutine.
func New(c Config) *Registry {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}

	r := &Registry{store: c.Store, log: c.Logger, now: c.Now, audit: c.Audit}
	r.urls.Store(&c.ProviderBaseURLs)
	return r
}

// SetProviderBaseURLs replaces the URLs of Config, and wakes all callers of Changes.
func (r *Registry) SetProviderBaseURLs(urls wire.ProviderBaseURLs) {
	// Before the wake: those who are woken look for them.
	r.urls.Store(&urls)

	for _, account := range r.waiters.accountNames() {
		r.waiters.wake(account)
	}
}

// Fetch answers a template fetch: the version that f selects, and the arguments of a
// model call. It returns wire.CodeNotFound naming what exists, or wire.CodeInvalid for a
// provider that cannot take the template.
func (r *Registry) Fetch(
	ctx context.Context, id wire.Identity, ident string, f wire.TemplateFetch,
) (wire.RenderedTemplate, error) {
	raw, err := r.source(ctx, id, ident, f.Selector)
	if err == nil {
		err = r.fillSnippets(ctx, id.Account, &raw)
	}
	if err != nil {
		return wire.RenderedTemplate{}, err
	}

	// Parsed each time: the server keeps no cache, since sidecars do.
	p, err := render.Prepare(raw.Blueprint, raw.Metadata)
	if err != nil {
		return wire.RenderedTemplate{}, err
	}

	return renderTemplate(ctx, &raw, p, f)
}

// Raw returns the version that s selects, with the texts of its snippets filled in.
// Errors as Fetch.
//
// Its Revision was current before the version was read, so a change with a higher
// revision may be missing from it.
func (r *Registry) Raw(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) (wire.RawTemplate, error) {
	raw, err := r.Source(ctx, id, ident, s)
	if err == nil {
		err = r.fillSnippets(ctx, id.Account, &raw)
	}

	return raw, err
}

// VersionAt returns the version that a selector meant at a moment, and the template's
// name. The version is 0 if it meant none then. wire.CodeNotFound if there is no such
// template.
func (r *Registry) VersionAt(
	ctx context.Context, account, ident string, sel wire.Selector, at time.Time,
) (name string, version int, err error) {
	head, err := r.head(ctx, wire.Identity{Account: account}, ident)
	if err != nil {
		return "", 0, err
	}

	// A number is taken as it is, so it may be one that does not exist.
	version, _ = head.ResolveAt(sel, at)
	if version > head.Latest() {
		version = 0
	}

	return head.Name, version, nil
}

// List returns one page of the account's templates, each with its latest version. A page
// has 30 items by default, and at most 100, because each item carries its text.
func (r *Registry) List(
	ctx context.Context, id wire.Identity, q wire.TemplateListQuery,
) (wire.TemplateList, error) {
	q = bounded(q)
	heads, err := r.store.Templates(ctx, id.Account)
	if err != nil {
		return wire.TemplateList{}, err
	}
	used := snippets(heads)
	heads = slices.DeleteFunc(heads, func(t wire.Template) bool {
		return !id.Sees(t.Name) || !q.Match(&t) || q.IsSnippet != nil && used[t.Name] != *q.IsSnippet
	})
	heads, total := q.PageOf(heads)

	list := wire.TemplateList{
		Success: true,
		Items:   []wire.TemplateListItem{},
		Paging:  wire.NewPaging(q.Page, q.PerPage, total),
	}
	for _, head := range heads {
		v, err := r.version(ctx, id.Account, &head, head.Latest())
		if err != nil {
			return wire.TemplateList{}, err
		}
		list.Items = append(list.Items, listItem(head, v, used[head.Name]))
	}

	return list, nil
}

// bounded sets the page and the number of items to their defaults and bounds.
func bounded(q wire.TemplateListQuery) wire.TemplateListQuery {
	q.Page = max(q.Page, 1)
	if q.PerPage < 1 {
		q.PerPage = 30
	}
	q.PerPage = min(q.PerPage, 100)
	return q
}

// Source returns the version that s selects as it was published, with references to
// snippets as they are. Errors as Fetch.
func (r *Registry) Source(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) (wire.RawTemplate, error) {
	// Before the read, as Raw promises.
	revision, err := r.revision(ctx, id.Account)
	if err != nil {
		return wire.RawTemplate{}, err
	}
	raw, err := r.source(ctx, id, ident, s)
	raw.Revision = revision

	return raw, err
}

// fillSnippets fills in the snippets of a version.
func (r *Registry) fillSnippets(ctx context.Context, account string, raw *wire.RawTemplate) error {
	// With all snippets, whatever the key may see: they are a part of the template.
	expanded, err := r.expand(ctx, account, raw.Name, raw.Blueprint)
	raw.Blueprint, raw.Snippets = expanded.Blueprint, nonNil(expanded.Used)

	return err
}

// source finds one version.
func (r *Registry) source(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) (wire.RawTemplate, error) {
	head, err := r.head(ctx, id, ident)
	if err != nil {
		return wire.RawTemplate{}, err
	}
	// Resolved once, so that head and version fit even if a label moves meanwhile.
	number, ok := head.Resolve(s)
	if !ok {
		return wire.RawTemplate{}, notSelected(&head, s)
	}

	v, err := r.version(ctx, id.Account, &head, number)
	raw := rawTemplate(&head, v)
	raw.ProviderBaseURLs = *r.urls.Load()

	return raw, err
}

// version reads a version that the head lists. If the store does not have it, the
// database is at fault, not the caller, so the error carries no code.
func (r *Registry) version(
	ctx context.Context, account string, head *wire.Template, number int,
) (wire.Version, error) {
	v, err := r.store.TemplateVersion(ctx, account, head.ID, number)
	if err != nil {
		err = fmt.Errorf("version %d of template %d: %v", number, head.ID, err)
	}

	return v, err
}

// head finds a template that is not deleted.
func (r *Registry) head(ctx context.Context, id wire.Identity, ident string) (wire.Template, error) {
	head, err := r.Head(ctx, id, ident)
	if err == nil && head.DeletedAt != nil {
		err = noTemplate(id, ident)
	}

	return head, err
}

func noTemplate(id wire.Identity, ident string) error {
	if !id.Sees(ident) {
		return wire.Errorf(wire.CodeNotFound,
			"There is no template %s for this key, which sees those whose names begin with %s.",
			quote(ident), quote(id.Prefix))
	}
	return wire.Errorf(wire.CodeNotFound,
		"There is no template %s. GET /prompt-templates lists those that exist.", quote(ident))
}

// revision returns the account's current revision. Asked for changes after the highest
// number, the store answers with that revision and no names.
func (r *Registry) revision(ctx context.Context, account string) (uint64, error) {
	c, err := r.store.TemplateChanges(ctx, account, math.MaxUint64)
	return c.Revision, err
}

// notSelected returns the error for a selector that means no version. It names what
// exists.
func notSelected(t *wire.Template, s wire.Selector) error {
	if s.Label == "" {
		return wire.Errorf(wire.CodeNotFound,
			"Version %d of %s does not exist; the latest is %d.", s.Version, quote(t.Name), t.Latest())
	}
	if len(t.Labels) == 0 {
		return wire.Errorf(wire.CodeNotFound,
			"%s has no label %s; it has no labels yet. Publish it with release_labels to add one.",
			quote(t.Name), quote(s.Label))
	}

	// A template may have many labels, and an error is read by people.
	const namesMax = 20
	var names []string
	for i, l := range t.Labels {
		if i == namesMax {
			names = append(names, "...")
			break
		}
		names = append(names, l.Name)
	}

	return wire.Errorf(wire.CodeNotFound, "%s has no label %s; it has: %s.",
		quote(t.Name), quote(s.Label), strings.Join(names, ", "))
}

// quote puts a name that a caller chose into a message, at most 200 bytes of it.
func quote(name string) string {
	const bytesMax = 200
	if len(name) > bytesMax {
		// The cut may be within a character.
		name = strings.ToValidUTF8(name[:bytesMax], "") + "..."
	}

	return "`" + name + "`"
}

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

// note adds a change to the account's audit log. by is the person who made it, or "" for the
// identity's key.
func (r *Registry) note(ctx context.Context, id wire.Identity, by, action, target, detail string) {
	wire.NoteAudit(ctx, r.audit, r.log, id.Account, wire.AuditEntry{
		At:     r.now().UTC(),
		Actor:  cmp.Or(by, wire.KeyActor(id.KeyID)),
		Action: action,
		Target: target,
		Detail: detail,
	})
}

// notePublished notes what a publish has changed: a version, what surrounds one, or both.
func (r *Registry) notePublished(
	ctx context.Context, id wire.Identity, by string, p wire.Publish, version int, done applied,
) {
	if done.restored {
		r.note(ctx, id, by, "restore template", p.Name, "")
	}

	if done.version {
		detail := fmt.Sprintf("version %d", version)
		for _, m := range done.moved {
			m.is = 0 // named already
			detail += ", " + m.String()
		}
		if p.CommitMessage != "" {
			detail += ": " + p.CommitMessage
		}
		r.note(ctx, id, by, "save template", p.Name, detail)
		done.moved = nil
	}

	if done.tags {
		r.note(ctx, id, by, "set tags", p.Name, strings.Join(p.Tags, ", "))
	}
	for _, m := range done.moved {
		r.note(ctx, id, by, "move label", p.Name, m.String())
	}
}

// move is a label that was pointed elsewhere.
type move struct {
	label   string
	was, is int // versions; 0 if there was no such label, or there is none any more
}

// String returns the move as the audit log has it.
func (m move) String() string {
	text := m.label
	if m.is > 0 {
		text = fmt.Sprintf("%s to version %d", text, m.is)
	}
	if m.was > 0 {
		text = fmt.Sprintf("%s (was %d)", text, m.was)
	}

	return text
}

// workspaceID fills the field in which clients of the peer read a workspace's number.
// Accounts here have no such number.
const workspaceID = 1

// rawTemplate joins a head and one of its versions.
func rawTemplate(t *wire.Template, v wire.Version) wire.RawTemplate {
	labels := labelsOf(t, v.Number)

	return wire.RawTemplate{
		Success:       true,
		ID:            t.ID,
		Name:          t.Name,
		Version:       v.Number,
		VersionID:     v.ID,
		WorkspaceID:   workspaceID,
		Tags:          nonNil(t.Tags),
		Labels:        labels,
		Blueprint:     v.Blueprint,
		Metadata:      v.Metadata,
		CommitMessage: wire.OrNull(v.CommitMessage),
		Author:        v.Author,
		CreatedAt:     v.CreatedAt,
		Snippets:      []wire.UsedSnippet{},
		Latest:        t.Latest(),
		AllLabels:     nonNil(t.Labels),
	}
}

// renderTemplate answers a fetch from one version. Server and sidecar both use it, so
// that their answers are the same.
//
// The answer has the blueprint as it was published; the variables fill llm_kwargs only.
// Its metadata.model follows the provider and the model of llm_kwargs, because clients
// choose by it what to call.
func renderTemplate(
	ctx context.Context, raw *wire.RawTemplate, p *render.Prepared, f wire.TemplateFetch,
) (wire.RenderedTemplate, error) {
	// An app that names no provider will call the
	// template's own, so it gets that one's URL.
	provider := cmp.Or(f.Provider, p.Provider())
	out := wire.RenderedTemplate{
		Success:         true,
		ID:              raw.ID,
		Name:            raw.Name,
		Version:         raw.Version,
		WorkspaceID:     raw.WorkspaceID,
		Tags:            nonNil(raw.Tags),
		CommitMessage:   raw.CommitMessage,
		Metadata:        p.Metadata(f.Provider, f.Model),
		Blueprint:       raw.Blueprint,
		Snippets:        nonNil(raw.Snippets),
		ProviderBaseURL: raw.ProviderBaseURLs.Of(provider),
	}

	kwargs, warnings, err := p.Kwargs(render.Call{
		Provider:  f.Provider,
		Model:     f.Model,
		Variables: f.Variables,
		Overrides: f.Overrides,
		Keep:      f.Keep,
		Context:   ctx,
	})
	switch {
	case err == nil:
		out.LLMKwargs = kwargs
	// The caller asked for exactly what failed.
	case f.Provider != "", errors.Is(err, render.ErrVariables):
		return wire.RenderedTemplate{}, err
	default: // a caller that did not ask for llm_kwargs still gets the template
		warnings = append(warnings, "llm_kwargs is null: "+wire.AsError(err).Message)
	}
	if f.Variables != nil && kwargs != nil {
		for _, hint := range p.Hints(maps.Keys(f.Variables)) {
			warnings = append(warnings[:len(warnings):len(warnings)], hint.Path+" "+hint.Message+".")
		}
	}
	out.Warning = wire.OrNull(strings.Join(warnings, " "))

	return out, nil
}

func published(
	t *wire.Template, number int, blueprint, metadata json.RawMessage, commitMessage string,
) wire.Published {
	return wire.Published{
		Success:       true,
		ID:            t.ID,
		Name:          t.Name,
		VersionID:     t.Versions[number-1].ID,
		VersionNumber: number,
		Tags:          nonNil(t.Tags),
		Labels:        labelsOf(t, number),
		Blueprint:     blueprint,
		Metadata:      metadata,
		CommitMessage: wire.OrNull(commitMessage),
		ExternalIDs:   nonNil(t.ExternalIDs),
	}
}

func listItem(t wire.Template, v wire.Version, isSnippet bool) wire.TemplateListItem {
	return wire.TemplateListItem{
		ID:            t.ID,
		Name:          t.Name,
		Version:       v.Number,
		Tags:          nonNil(t.Tags),
		Labels:        nonNil(t.Labels),
		Blueprint:     v.Blueprint,
		Metadata:      v.Metadata,
		CommitMessage: wire.OrNull(v.CommitMessage),
		ExternalIDs:   nonNil(t.ExternalIDs),
		IsSnippet:     isSnippet,
		CreatedAt:     t.CreatedAt,
		UpdatedAt:     t.UpdatedAt,
	}
}

// labelsOf lists the labels that point to a version.
func labelsOf(t *wire.Template, number int) []string {
	names := []string{}
	for _, l := range t.Labels {
		if l.Version == number {
			names = append(names, l.Name)
		}
	}
	return names
}

// nonNil makes sure that a list becomes an array in JSON, not null.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
