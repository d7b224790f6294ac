package records

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Config holds the parts of a Service.
type Config struct {
	Store    archive.Store
	Versions Versions         // nil: links without a version keep it unknown
	Prices   archive.Prices   // nil: only what callers report is known
	Metrics  *metrics.Metrics // required
	Logger   *slog.Logger     // nil: slog.Default
	Now      func() time.Time // nil: time.Now
	Name     string           // names this server in events that no sidecar accepted
	Audit    wire.AuditLog    // nil: nothing is logged

	Definitions Definitions // of scores, if there are any
}

// Service folds events into a Store and answers questions about records. It is safe for
// concurrent use if the Store is. The Store refuses an identity without an account.
type Service struct {
	config Config
	doing  sync.Map // accounts in which this server does what was left

	searches   *admission.Queue // through prompts and responses
	counts     *admission.Queue // that may take long
	retryAfter admission.RetryAfter

	longTrace   sync.Mutex   // its holder may read one
	traces      sync.Map     // keptTrace by traceKey
	tracesSpans atomic.Int64 // of those
}

// New returns a Service. It starts no goroutine and needs no closing; the Store is the
// caller's to close.
func New(c Config) *Service {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}

	return &Service{
		config: c,
		// Half of those under way may wait for the disk.
		searches: admission.NewQueue(int64(2*runtime.GOMAXPROCS(0)), turnsWaitingMax, nil),
		counts:   admission.NewQueue(countsMax, turnsWaitingMax, nil),
	}
}

// Bounds of what takes turns. An account may have half of those that wait.
const (
	countsMax       = 2
	turnsWaitingMax = 1024
	turnPatience    = 25 * time.Second       // most callers leave after half a minute
	turnlessBudget  = 100 * time.Millisecond // of a count that takes no turn
)

// takeTurn waits until it is an account's turn in a queue, which the caller then leaves. A budget is for
// the work alone: if all were under way together, it would end while they wait for each other, and
// none would be answered.
func (svc *Service) takeTurn(ctx context.Context, queue *admission.Queue, account string) error {
	err := queue.Enter(ctx, account, 1, 1, turnPatience)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return admission.EndedError(ctx)
	}

	return wire.Unavailable(svc.retryAfter.Next(), "The server has more searches through prompts and responses, "+
		"and more to count, than it can answer now. Retry after the time in Retry-After.")
}

// errCursor rejects a cursor that is not the one named.
func errCursor(wanted string) error {
	return wire.Invalid(wire.FieldError{
		Field:  "cursor",
		Reason: "is not valid; send the " + wanted + " unchanged",
	})
}

// Definitions are what projects expect of their scores.
type Definitions interface {
	ScoreDefinitions(ctx context.Context, id wire.Identity) (wire.ScoreDefinitions, error)
}

// Versions knows which version of a template a selector meant at a moment: the registry.
type Versions interface {
	// VersionAt finds a template by its name or decimal id. It returns the template's
	// name and the version that the selector meant at that moment, 0 if it meant none.
	// The error is CodeNotFound for an unknown template; any other error means that it
	// cannot be answered now.
	VersionAt(
		ctx context.Context, account, ident string, selector wire.Selector, at time.Time,
	) (name string, version int, err error)
}

// Search finds records of the identity's account, newest first.
func (svc *Service) Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error) {
	q, err := query.Compile(s)
	if err != nil {
		return wire.SearchPage{}, err
	}

	return svc.search(ctx, id, q)
}

func (svc *Service) search(ctx context.Context, id wire.Identity, q query.Query) (wire.SearchPage, error) {
	defer svc.observeQuery(time.Now())
	// Those that rows alone decide wait for nothing.
	if q.Budget > 0 {
		if err := svc.takeTurn(ctx, svc.searches, id.Account); err != nil {
			return wire.SearchPage{}, err
		}
		defer svc.searches.Leave(1)
	}
	left := svc.isLeft(id.Account)
	page, err := svc.config.Store.Search(ctx, id.Account, q)
	if err != nil {
		return wire.SearchPage{}, err
	}
	answer := q.Answer(page)
	answer.Complete = answer.Complete && !left

	return answer, nil
}

// observeQuery records how long a question to the store took.
func (svc *Service) observeQuery(start time.Time) {
	svc.config.Metrics.ArchiveQuerySeconds.Observe(time.Since(start).Seconds())
}

// positions returns up to limit next rows that q finds. stopped is where the store's
// budget was spent, or nil.
func (svc *Service) positions(
	ctx context.Context, id wire.Identity, q query.Query, limit int,
) (page []query.Position, stopped *query.Position, err error) {
	collect := func(row *wire.Row) (bool, error) {
		page = append(page, query.PositionOf(row))
		return len(page) < limit, nil
	}
	stopped, err = svc.config.Store.Scan(ctx, id.Account, q, rowcode.PlaceColumns, collect)

	return page, stopped, err
}

// Kept returns how much is kept of the identity's account.
func (svc *Service) Kept(ctx context.Context, id wire.Identity) (wire.Kept, error) {
	has, err := svc.config.Store.Counts(ctx, id.Account)

	return wire.Kept{Requests: has.Records, Bytes: has.Bytes}, err
}

// Orphans lists the records of the identity's account whose request has not arrived,
// by request id.
func (svc *Service) Orphans(
	ctx context.Context, id wire.Identity, q wire.OrphanQuery,
) (wire.OrphanPage, error) {
	page := wire.OrphanPage{Success: true, Items: []wire.Orphan{}}
	after := ""
	if q.Cursor != "" {
		// The cursor is the last request id of the page before.
		var err error
		after, err = wire.ParseID(q.Cursor)
		if err != nil {
			return page, errCursor("next_cursor of an earlier answer")
		}
	}

	has, err := svc.config.Store.Counts(ctx, id.Account)
	if err != nil {
		return page, err
	}
	page.Total, page.Events = has.Orphans.Requests, has.Orphans.Events // of all pages

	states, next, err := svc.config.Store.States(ctx, id.Account, archive.Orphaned, after, q.PerPage)
	for i := range states {
		if row, ok := states[i].OrphanRow(); ok {
			page.Items = append(page.Items, row)
		}
	}
	if next != "" {
		page.NextCursor = &next
	}

	return page, err
}
