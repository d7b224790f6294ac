package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive/reports"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/archive/rowcode"
)

// Group is a group of changes to records, which a Store loads and writes together. Each
// record is loaded once and written once, however many changes of it there are. Not safe
// for concurrent use.
type Group struct {
	Records  []*Record // in the order first met
	Accounts map[string]*GroupAccount

	// Fills is set if nothing changes but the columns that rows lacked: see Fill. Summaries of an
	// earlier form say nothing of these, and stay.
	Fills bool

	// Deleted is when the records of a deletion are deleted.
	Deleted time.Time

	// Left is set if something was left to do: see ToDos.
	Left bool

	byKey   map[recordKey]*Record
	asked   int    // how many records its changes are about; Unite adds others
	prices  Prices // of the service whose events came
	held    int    // the weight of the states that were loaded
	heldMax int
	usage   *metrics.Usage // nil does not count
}

type recordKey struct {
	account string
	id      UUID
}

// GroupAccount is what a Group has to know about an account besides its records.
type GroupAccount struct {
	// Orphans is the account's tally: loaded by the Store, and changed with the group. A tally
	// that others change at the same time may be a little old.
	Orphans Orphans

	// Deleted are the deleted metadata values that the group's records may have, by
	// rowcode.HashStored, with the time up to which each was deleted.
	Deleted map[[16]byte]time.Time

	// Sets are those that Loader.Sets loaded, by their keys. The Store writes those that Unite changed.
	Sets map[UUID]*Set
}

// Record is one record of a Group: as a Store loaded it, and what the group makes of it.
type Record struct {
	Account string // as the Store names it
	ID      UUID

	// Loaded by the Store.
	State    Stored
	Revision int64            // of what the Store keeps; 0 if the record does not exist
	Before   Footprint        // as it was then
	stood    string           // the event of its request then
	placed   []reports.Place  // where it was found then
	existed  bool             // it had events then
	owner    [2]string        // its own user and session then
	trace    string           // its trace then, if it said something for that or took what others said
	traced   []UUID           // the keys of that trace
	used     metrics.UsedCall // what it counted for in usage then

	// The effects of the group on it. Nothing is written unless Changed.
	Changed bool
	Removed bool // it is deleted, or was before: later events are duplicates
	Buried  bool // a tombstone must be written
	Erase   bool // what it was must leave the disk
	edited  bool // by more than new events
	renews  bool // it may lack what its trace says
	settles bool // it may lack in the sets of its places
	touched bool // others have changed what it shows

	places   []reports.Place            // where it is found now
	in       []reports.Place            // where the group's sets have it
	fresh    map[string]json.RawMessage // kept bodies of its new events
	joined   json.RawMessage            // the body of its span, with its log records
	hadJoint bool                       // it had a joint body when it was loaded
	hid      []wire.MetadataRow         // what it had and did not show when it was loaded

	Bodies   []PackedBody             // of new events
	Replaced map[UUID]json.RawMessage // bodies of earlier events, as they should be
	Hidden   []wire.MetadataRow       // values that it has, and that its row shows no longer

	After Footprint // of a changed record, once the group is settled
}

// PackedBody is a body that is kept of an event, as the Store packs it.
type PackedBody struct {
	Event UUID
	Bytes []byte
}

// Footprint is what a record counts for, and where it is found. Of a record that does not
// exist it is zero.
type Footprint struct {
	Listed   bool
	ListedAt time.Time // its place in lists, if it is Listed
	TextHash int       // see wire.Row; of what is Listed
	Bare     bool
	Tagged   bool
	At       time.Time // its order time, if it is Listed or Bare

	Trace   UUID // zero: none
	Bytes   int64
	Waiting Orphans
	Rollups rollup.Part
}

// Footprint returns what the state counts for.
func (s *State) Footprint() (f Footprint) {
	if len(s.History) == 0 {
		return f
	}

	f = Footprint{Listed: s.Listed(), Bare: s.Bare(), Tagged: s.Tagged(), Bytes: int64(s.Bytes()), Waiting: s.Waiting()}
	switch {
	case f.Listed:
		f.ListedAt, f.At, f.TextHash = s.ListTime(), s.Request.At, s.textHash()
	case f.Bare:
		f.At = s.BareAt()
	}
	f.Trace, _ = s.Trace()
	f.Rollups = s.rollups()

	return f
}

// Counts are how many records and bytes an account has, or how these change.
type Counts struct {
	Records int64   `json:"records"` // that lists show
	Spans   int64   `json:"spans"`   // records that are only a span
	Bytes   int64   `json:"bytes"`   // of the bodies of all events, as they were sent
	Orphans Orphans `json:"orphans"`
}

// Change takes away what a record counted for, and adds what it counts for now.
func (c *Counts) Change(before, now Footprint) {
	c.Records += one(now.Listed) - one(before.Listed)
	c.Spans += one(now.Bare) - one(before.Bare)
	c.Bytes += now.Bytes - before.Bytes
	c.Orphans.Add(now.Waiting.Minus(before.Waiting))
}

// AddSet adds a set that was loaded.
func (a *GroupAccount) AddSet(key UUID, set Set) {
	a.Sets = with(a.Sets, key, &set)
}

// one is 1 for what counts.
func one(counts bool) int64 {
	if counts {
		return 1
	}
	return 0
}

// NewGroup makes an empty group. Its states together weigh at most heldMax, unless there is
// only one. usage is what CountUsage counts in; nil for nothing.
func NewGroup(heldMax int, usage *metrics.Usage) *Group {
	return &Group{
		Accounts: make(map[string]*GroupAccount),
		byKey:    make(map[recordKey]*Record),
		heldMax:  heldMax,
		usage:    usage,
	}
}

// Add adds a record to the group, or returns the one that is in it already.
func (g *Group) Add(account, requestID string) (*Record, error) {
	id, ok := ParseUUID(requestID)
	if !ok {
		return nil, BadID(requestID)
	}
	if g.Accounts[account] == nil {
		g.Accounts[account] = &GroupAccount{}
	}

	key := recordKey{account, id}
	if g.byKey[key] == nil {
		r := &Record{Account: account, ID: id}
		g.byKey[key], g.Records = r, append(g.Records, r)
	}

	return g.byKey[key], nil
}

// Record returns a record of the group, nil if it is not in it.
func (g *Group) Record(account string, id UUID) *Record { return g.byKey[recordKey{account, id}] }

// Forget forgets everything that was loaded and decided. The records stay.
func (g *Group) Forget() {
	g.held = 0
	for _, r := range g.Records {
		*r = Record{Account: r.Account, ID: r.ID}
	}
	for _, a := range g.Accounts {
		*a = GroupAccount{}
	}
}

// Loaded notes how a record is before the group changes it. It fails with ErrHeavy if the
// states are too heavy together.
func (g *Group) Loaded(r *Record) error {
	if g.held += r.State.Weight(); g.held > g.heldMax && g.Several() {
		return ErrHeavy
	}
	r.Before, r.placed = r.State.Footprint(), r.State.places()
	r.places, r.in = r.placed, r.placed
	r.owner = r.State.owner()
	r.trace, r.traced = r.State.TraceID(), r.State.traceKeys()
	r.existed, r.hadJoint, r.hid = len(r.State.History) > 0, r.State.Joint != nil, r.State.Hidden()
	if r.State.Request != nil {
		r.stood = r.State.Request.ID
	}
	if g.usage != nil && r.Before.Listed {
		r.used = r.State.used(g.usage.Keys())
	}

	return nil
}

// Several reports whether the group can be divided.
func (g *Group) Several() bool { return cmp.Or(g.asked, len(g.Records)) > 1 }

// Fold folds an event into its record, which must be loaded. packed is the body, nil if it is
// not kept.
func (g *Group) Fold(account string, e *Event, packed []byte) (wire.Result, error) {
	r, err := g.Add(account, e.RequestID)
	if err != nil {
		return wire.Result{}, err
	}

	// Answering "duplicate" lets a sidecar forget the event.
	a := g.Accounts[account]
	if r.Removed || e.keptOut(a.deleted) {
		return wire.Result{ID: e.ID, Code: wire.ResultDuplicate}, nil
	}
	if r.State.WouldWait(*e) && a.Orphans.Full() {
		return OrphanLater(e.ID), nil
	}

	// Duplicates and conflicts change nothing, and are not written.
	waited := r.State.Waiting()
	result := r.State.Take(*e)
	if result.Code != wire.ResultAccepted {
		return result, nil
	}

	r.Changed, g.prices = true, cmp.Or(g.prices, e.Prices)
	a.Orphans.Add(r.State.Waiting().Minus(waited))
	if packed != nil {
		event, ok := ParseUUID(e.ID)
		if !ok {
			return result, BadID(e.ID)
		}
		r.Bodies = append(r.Bodies, PackedBody{event, packed})
		r.fresh = with(r.fresh, e.ID, e.Body)
	}
	g.keepOut(a, r, e)

	return result, nil
}

// keepOut removes a record that a deletion by metadata covers. The event that was just
// folded may be the first to show that it does.
func (g *Group) keepOut(a *GroupAccount, r *Record, e *Event) {
	if len(a.Deleted) == 0 || len(e.Metadata) == 0 && e.Request == nil && e.Span == nil {
		return
	}

	if r.State.DeletedBy(e, a.deleted) {
		g.Remove(r, true)
	}
}

// deleted returns when a value was deleted; see Selectors.
func (a *GroupAccount) deleted(key, value string) (before time.Time, ok bool) {
	before, ok = a.Deleted[rowcode.HashStored(key, value)]
	return before, ok
}

// Remove deletes a record with everything that is kept of it. With a tombstone it never
// comes back.
func (g *Group) Remove(r *Record, tombstone bool) {
	if r.Removed {
		return
	}

	// A later event of the group may take the place in the account's tally.
	g.Accounts[r.Account].Orphans.Add(Orphans{}.Minus(r.State.Waiting()))
	r.Removed, r.Changed, r.Buried, r.Erase = true, true, tombstone, true
}

// bring puts a record into the group as it was in another database, unless it exists.
func (g *Group) bring(r *Record, moved *Moved, loader Loader) error {
	// A copy that broke off brings its last records again. A record in the copy is written even
	// if it has a tombstone here.
	if len(r.State.History) > 0 {
		return nil
	}

	r.fresh = moved.Bodies
	for id, body := range moved.Bodies {
		event, ok := ParseUUID(id)
		if !ok {
			return BadID(id)
		}
		if event == r.ID.joint() {
			continue
		}
		r.Bodies = append(r.Bodies, PackedBody{event, loader.Pack(body)})
	}

	// Its sets here decide what others add to it.
	state := moved.State
	state.Same, state.Context, state.Given, state.Linked, state.Logs, state.Joint = nil, nil, nil, nil, "", nil
	r.State.State, r.Changed, r.Removed = state, true, false
	g.Accounts[r.Account].Orphans.Add(r.State.Waiting())

	return nil
}

// Settle notes what the changed records count for from now on. Nothing may change them after it.
func (g *Group) Settle() {
	for _, r := range g.Records {
		if r.Changed && !r.Removed {
			r.After = r.State.Footprint()
			r.Hidden = slices.DeleteFunc(r.State.Hidden(), func(m wire.MetadataRow) bool {
				_, known := slices.BinarySearchFunc(r.hid, m, rowcode.CompareMetadata)
				return known
			})
		}
	}
}

// DroppedBodies returns the events whose stored bodies go, because the record no longer lists
// them. Those that came with the group are not stored.
func (r *Record) DroppedBodies() (stored []UUID) {
	for _, dropped := range r.State.Dropped() {
		event, _ := ParseUUID(dropped)
		came := len(r.Bodies)
		r.Bodies = slices.DeleteFunc(r.Bodies, func(b PackedBody) bool { return b.Event == event })
		if came == len(r.Bodies) {
			stored = append(stored, event)
		}
	}
	if r.hadJoint && r.State.Joint == nil {
		stored = append(stored, r.ID.joint())
	}

	return stored
}

// BadID returns the error for an id that the archive should not have passed on.
func BadID(id string) error {
	return wire.Errorf(wire.CodeInternal, "%.40q is not an id; the archive should not have passed it on.", id)
}

// Committer collects the changes that wait into groups, each of which a Store commits as
// one transaction. One of the callers leads: it commits a group, while changes that come
// meanwhile wait for the next. It starts no goroutine, so none can be missing when it
// counts. Safe for concurrent use.
type Committer[T any] struct {
	commit    func(ctx context.Context, lane int, group []*Waiting[T])
	bytesMax  int
	eventsMax int
	lanes     chan int // those that are free

	mu     sync.Mutex
	queue  []*Waiting[T] // under mu
	closed error         // under mu
}

// Waiting is one change on its way to a transaction.
type Waiting[T any] struct {
	Change T
	Bytes  int // of the bodies in it
	Events int

	done chan error // gets one answer
}

// Finish answers the caller, unless it has its answer.
func (w *Waiting[T]) Finish(err error) {
	select {
	case w.done <- err:
	default:
	}
}

// NewCommitter makes a Committer with this many lanes: transactions at the same time. A
// group has at most bytesMax bytes and eventsMax events, unless its only change has more.
// commit must answer each change of the group; its ctx does not end.
func NewCommitter[T any](
	lanes, bytesMax, eventsMax int, commit func(ctx context.Context, lane int, group []*Waiting[T]),
) *Committer[T] {
	c := &Committer[T]{commit: commit, bytesMax: bytesMax, eventsMax: eventsMax, lanes: make(chan int, lanes)}
	for lane := range lanes {
		c.lanes <- lane
	}

	return c
}

// Do commits a change with others, and returns its answer. It looks at ctx before the
// change waits, not after: a change that may have been committed must not be reported as
// cancelled, nor its bytes be reused.
func (c *Committer[T]) Do(ctx context.Context, w *Waiting[T]) error {
	if err := ctx.Err(); err != nil {
		return wire.Unavailable(0, "The request ended before it was carried out: %w", err)
	}
	w.done = make(chan error, 1)
	if err := c.enqueue(w); err != nil {
		return err
	}

	// A caller that finds a lane free leads. Its group may be full before its own change
	// has its turn, so it goes round until that has its answer.
	for {
		select {
		case err := <-w.done:
			return err
		case lane := <-c.lanes:
			// The group is others' as well: it does not end with this caller's call.
			c.commitGroup(context.WithoutCancel(ctx), lane)
		}
	}
}

func (c *Committer[T]) enqueue(w *Waiting[T]) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.closed == nil {
		c.queue = append(c.queue, w)
	}
	return c.closed
}

// Len returns how many changes wait.
func (c *Committer[T]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.queue)
}

// Bounds of a small change.
const (
	smallBytes  = 64 << 10
	smallEvents = 32
)

func (w *Waiting[T]) small() bool { return w.Bytes <= smallBytes && w.Events <= smallEvents }

// take removes the next group from the queue: the change that has waited
// longest, then the small ones, then what else fits. So a small change waits
// for the group being committed and for one large one at most, however many
// of these there are. No large one waits forever.
func (c *Committer[T]) take() (group []*Waiting[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()

	bytes, events := 0, 0
	for _, small := range []bool{true, false} {
		// It is nil in the end if all are taken, which lets go of the array.
		var rest []*Waiting[T]
		for i, w := range c.queue {
			// The first in the queue goes even if it is too large for any
			// group: otherwise it would wait forever.
			first := small && i == 0
			fits := bytes+w.Bytes <= c.bytesMax && events+w.Events <= c.eventsMax
			if !first && (!fits || small && !w.small()) {
				rest = append(rest, w)
				continue
			}
			group = append(group, w)
			bytes, events = bytes+w.Bytes, events+w.Events
		}
		c.queue = rest
	}

	return group
}

// commitGroup commits the next group and hands the lane on.
func (c *Committer[T]) commitGroup(ctx context.Context, lane int) {
	group := c.take()
	defer func() {
		// They have their answers, unless something panicked.
		for _, w := range group {
			w.Finish(wire.Errorf(wire.CodeInternal,
				"A write that shared this one's transaction failed; send it again."))
		}
		c.lanes <- lane
	}()

	if len(group) > 0 {
		c.commit(ctx, lane, group)
	}
}

// Hold waits until a lane is free and keeps it from committing until release is called.
// ok is false if stop was closed first.
func (c *Committer[T]) Hold(stop <-chan struct{}) (release func(), ok bool) {
	select {
	case <-stop:
		return nil, false
	case lane := <-c.lanes:
		return func() { c.lanes <- lane }, true
	}
}

// Close fails everything that waits, and everything that comes, with err. When it
// returns, no commit runs. It must not be called twice.
func (c *Committer[T]) Close(err error) {
	c.mu.Lock()
	c.closed = err
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()

	for _, w := range queue {
		w.Finish(err)
	}
	// Holding every lane means that no commit runs. They
	// are not given back, so none begins.
	for range cap(c.lanes) {
		<-c.lanes
	}
}

// Came is a record that got bodies, and what it belongs to.
type Came struct {
	Of    string // the name of its session, or else of its trace; "" without both
	ID    UUID
	Bytes int // of the new bodies, packed
}

// Came returns the records of an account that got bodies in the group, once it is written.
func (g *Group) Came(account string) (came []Came) {
	for _, r := range g.Records {
		if r.Account != account || !r.Changed || r.Removed || len(r.Bodies) == 0 {
			continue
		}

		names := &r.After.Rollups.Names
		c := Came{Of: cmp.Or(names[rollup.Session], names[rollup.Trace]), ID: r.ID}
		for _, body := range r.Bodies {
			c.Bytes += len(body.Bytes)
		}
		came = append(came, c)
	}

	return came
}
