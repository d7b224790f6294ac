package wire

// The capabilities in this file are what the API and the dashboard are made from: what a server or a sidecar can do,
// whichever package does it.

import (
	"context"
	"time"
)

// Recorder takes writes. On a sidecar it is the spool, on a server the archive.
//
// When Record returns results without an error, every event that was accepted or is a duplicate
// is durable. Results come in the order of the events. Record may be called concurrently. It
// owns the bytes of the events' bodies from then on: it may keep them, and overwrite them.
type Recorder interface {
	Record(ctx context.Context, id Identity, events []Event) ([]Result, error)
}

// Recorded is what was recorded: to be read, counted, changed and deleted. When Delete returns, the
// records can no longer be found. Reprice and Scan work for a few seconds and return a
// cursor to continue from.
type Recorded interface {
	Request(ctx context.Context, id Identity, requestID string) (Record, error)
	Trace(ctx context.Context, id Identity, trace string) (Trace, error)
	Search(ctx context.Context, id Identity, s Search) (SearchPage, error)
	Orphans(ctx context.Context, id Identity, q OrphanQuery) (OrphanPage, error)
	Rollups(ctx context.Context, id Identity, s RollupSearch) (RollupPage, error)
	Spans(ctx context.Context, id Identity, s SpanSearch) (SpanPage, error)
	Session(ctx context.Context, id Identity, session string) (RollupFound, error)

	Analyze(ctx context.Context, id Identity, q StatisticsQuery) (Analytics, error)
	Statistics(ctx context.Context, id Identity, q PartsQuery) (Statistics, error)
	Suggest(ctx context.Context, id Identity, q SuggestQuery) (Suggestions, error)

	Delete(ctx context.Context, id Identity, d Deletion) (Deleted, error)
	Reprice(ctx context.Context, id Identity, cursor string) (Repriced, error)
	Scan(ctx context.Context, id Identity, q ScanQuery) (Scanned, error)
}

// Records is what was recorded, where it is kept: the archive of a server.
type Records interface {
	Recorded

	// IsClosed reports whether a trace was closed.
	IsClosed(ctx context.Context, id Identity, trace [16]byte) (bool, error)

	// ExportEvents calls fn with the events of each record that s finds. Now and then it calls
	// mark with a cursor that continues after them, which is "" at the end. It ends with the
	// first error of either.
	ExportEvents(
		ctx context.Context, id Identity, s Search,
		fn func([]Event) error, mark func(cursor string) error,
	) error
}

// Archive is Records with what only people ask for, in the dashboard.
type Archive interface {
	Records

	// Export calls fn with each record that e finds, in full, newest first.
	Export(ctx context.Context, id Identity, e ExportQuery, fn func(Exported) error) error
	Agreement(ctx context.Context, id Identity, s ScoreSum, f *Filter) (ScoreAgreement, error)
	Kept(ctx context.Context, id Identity) (Kept, error)
}

// Scoring is what a project says about its scores by hand.
type Scoring interface {
	// ScoreDefinitions returns all definitions, from memory: they may be a second old.
	ScoreDefinitions(ctx context.Context, id Identity) (ScoreDefinitions, error)

	// DefineScore makes a definition, or replaces the one of its name.
	DefineScore(ctx context.Context, id Identity, d ScoreDefinition) error

	UndefineScore(ctx context.Context, id Identity, name string) error
}

// Reviews is Scoring with the queues in which people give scores.
type Reviews interface {
	Scoring

	ReviewQueues(ctx context.Context, id Identity) ([]ReviewQueue, error)
	PutReviewQueue(ctx context.Context, id Identity, q ReviewQueue) error
	RemoveReviewQueue(ctx context.Context, id Identity, name string) error

	// Claim returns the first of some calls that no other reviewer looks at; "" if there is none. It is
	// the reviewer's for two minutes.
	Claim(ctx context.Context, account, reviewer string, calls []string) (call string, err error)
}

// Templates is the registry, as programs use it. On a sidecar Fetch and Raw answer from its cache where they can;
// Publish and List go to the server.
type Templates interface {
	Fetch(ctx context.Context, id Identity, ident string, f TemplateFetch) (RenderedTemplate, error)
	Raw(ctx context.Context, id Identity, ident string, s Selector) (RawTemplate, error)
	Publish(ctx context.Context, id Identity, p Publish) (Published, error)
	List(ctx context.Context, id Identity, q TemplateListQuery) (TemplateList, error)
	TemplateEditor
}

// Registry is Templates with what only people do, in the dashboard, which shows beforehand what a change would do.
// Package registry documents the errors.
type Registry interface {
	Templates

	Head(ctx context.Context, id Identity, ident string) (Template, error)

	// Moved returns the moves of labels from one version to another since a time, in order of time.
	Moved(ctx context.Context, id Identity, since time.Time) ([]TemplateMove, error)

	Preview(ctx context.Context, id Identity, p Publish, f TemplateFetch) (RenderedTemplate, []Finding, error)
	Findings(ctx context.Context, id Identity, p Publish) ([]Finding, error)
	FindingsOf(ctx context.Context, id Identity, ident string, s Selector) ([]Finding, error)
}

// Sidecars keeps what the account's sidecars report. On a sidecar it asks the server.
type Sidecars interface {
	// Beat records a heartbeat, durably.
	Beat(ctx context.Context, id Identity, h Heartbeat) error
	Fleet(ctx context.Context, id Identity) (Fleet, error)
}

// Targets is where a project's notices go.
type Targets interface {
	// Targets returns the targets, by name, with what became of their notices.
	Targets(ctx context.Context, id Identity) ([]Target, error)

	// PutTarget makes a target, or changes the one of its name. It returns the secret if it made one,
	// which cannot be shown again.
	PutTarget(ctx context.Context, id Identity, t TargetSettings) (made string, err error)

	// RemoveTarget removes a target with its queue and its dead letters.
	RemoveTarget(ctx context.Context, id Identity, name string) error

	// TestTarget delivers a test now, beside the queue. CodeConflict says why the target did not take it.
	TestTarget(ctx context.Context, id Identity, name string) error

	// Deliveries returns a page of what waits, or of the dead letters.
	Deliveries(ctx context.Context, id Identity, name string, q DeliveryQuery) ([]Delivery, error)

	// TakeDeliveries replays or discards some of them, at most 200, and returns how many.
	TakeDeliveries(ctx context.Context, id Identity, name string, c DeliveryChoice) (int, error)
}

// Keys creates, lists, rotates and revokes keys. On a server it is auth.
type Keys interface {
	CreateKey(ctx context.Context, n NewKey) (Secret, Key, error)
	RotateKey(ctx context.Context, id string, overlap time.Duration) (
		secret Secret, made, old Key, err error)
	Keys(ctx context.Context) ([]Key, error)
	RevokeKey(ctx context.Context, id string) (Key, error)
}
