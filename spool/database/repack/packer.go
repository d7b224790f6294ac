package repack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/crashpoint"
	"promptspool/spool/database/compress"
)

// Store is what a Packer needs of a store of records.
type Store interface {
	archive.Store

	// Repack calls pack with the bodies of some records of an account and stores what it returns, in one
	// transaction. The values are pack's for the length of the call. If one of them was changed
	// meanwhile, nothing is stored, and the error is ErrChanged.
	Repack(ctx context.Context, account string, ids []archive.UUID, pack func([]Body) ([]Body, error)) error

	// Packed returns the moment before which every accepted event was looked at; zero if none was.
	Packed(ctx context.Context) (time.Time, error)
	SetPacked(ctx context.Context, until time.Time) error
}

// ErrChanged is for bodies that were changed or deleted while they were packed.
var ErrChanged = errors.New("a body was changed while it was packed")

// When bodies of a session are packed: it was quiet for a while, or enough stand alone, or one has
// stood alone for long.
const (
	quietFor  = 10 * time.Minute
	aloneMost = 32
	aloneFor  = 30 * time.Minute
)

// Bounds of a Packer: how many bodies may wait, in how many sessions that were active lately, how
// many are packed together, and how many bytes these have as they are stored.
const (
	waitingMax  = 1 << 17
	sessionsMax = 1 << 15
	activeFor   = 6 * time.Hour
	togetherMax = 64
	bytesMax    = 4 << 20
)

// skipped is how many times as many bodies are left as they are after some that have nothing in common.
const skipped = 4

// Packer packs the bodies of sessions, or else of traces, some time after they came. Calls that are alone
// in theirs are packed with others like them: these have the same instructions, or the same tools. It is
// safe for concurrent use.
//
// The calls that wait are in memory only. After a start, Recall looks at those of the last hour before.
type Packer struct {
	store  Store
	codec  *compress.Codec
	logger *slog.Logger
	now    func() time.Time

	packing sync.Mutex // held while packing: one session at a time, for its memory
	rule    Rule       // packing
	saved   time.Time  // packing: what SetPacked got last; zero before Recall has ended

	mu       sync.Mutex
	sessions map[session]*waiting // mu
	waiting  int                  // mu: bodies of all sessions
}

// session is what belongs together: a session of an account, or a trace without one, in one week. Calls
// that are alone have no name.
type session struct {
	account, name string
	week          archive.UUID
}

// waiting is what a session has that was not packed yet.
type waiting struct {
	came        []archive.Came
	keep        []archive.UUID // records that Rule.Pack wants to see again
	first, last time.Time      // when the oldest and the newest came
}

// NewPacker returns a packer of the bodies of a store.
func NewPacker(store Store, codec *compress.Codec, logger *slog.Logger, now func() time.Time) *Packer {
	return &Packer{
		store: store, codec: codec, logger: logger, now: now, rule: DefaultRule,
		sessions: make(map[session]*waiting),
	}
}

// Use has it pack by another rule than DefaultRule from now on.
func (p *Packer) Use(rule Rule) {
	p.packing.Lock()
	defer p.packing.Unlock()
	p.rule = rule
}

// Add notes records that got bodies, in the account that is given.
func (p *Packer) Add(account string, came []archive.Came) {
	if len(came) == 0 {
		return
	}
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, c := range came {
		key := session{account, c.Of, archive.WeekKey(c.ID.Time())}
		w := p.sessions[key]
		if w == nil {
			w = &waiting{}
			p.sessions[key] = w
		}
		if len(w.came) == 0 {
			w.first = now
		}
		// Beyond that they stay as they are.
		if p.waiting < waitingMax {
			w.came, w.last = append(w.came, c), now
			p.waiting++
		}
	}
}

// due takes out the sessions that are due, or all.
func (p *Packer) due(all bool) map[session]waiting {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()

	all = all || p.waiting >= waitingMax/2
	due := make(map[session]waiting)
	for key, w := range p.sessions {
		n := len(w.came)
		switch {
		case n == 0 && (len(w.keep) == 0 || len(p.sessions) > sessionsMax || now.Sub(w.last) > activeFor):
			delete(p.sessions, key)
		case n >= aloneMost, n > 0 && (all || now.Sub(w.last) >= quietFor || now.Sub(w.first) >= aloneFor):
			due[key] = *w
			p.waiting -= n
			w.came = nil
		}
	}

	return due
}

// packEvery is how often Run looks for sessions that are due.
const packEvery = time.Minute

// Run packs what is due, once a minute, until ctx ends. Before that it looks at what came before this
// process; see Recall.
func (p *Packer) Run(ctx context.Context) {
	tick := time.NewTicker(packEvery)
	defer tick.Stop()

	step := p.Recall
	for ctx.Err() == nil {
		err := step(ctx)
		switch {
		case err == nil:
			step = p.Pack
		case ctx.Err() == nil:
			p.logger.Error("bodies could not be packed against each other; retrying", "error", err)
		}

		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// Pack packs what is due. Bodies that cannot be packed stay as they are.
func (p *Packer) Pack(ctx context.Context) error { return p.pack(ctx, false) }

// PackAll packs everything that waits.
func (p *Packer) PackAll(ctx context.Context) error { return p.pack(ctx, true) }

func (p *Packer) pack(ctx context.Context, all bool) error {
	p.packing.Lock()
	defer p.packing.Unlock()

	begun := p.now()
	due := p.due(all)
	var err error
	for key, w := range due {
		if err == nil && ctx.Err() == nil {
			err = p.packDue(ctx, key, &w)
		} else {
			p.Add(key.account, w.came)
		}
	}
	if err != nil || ctx.Err() != nil || len(due) == 0 || p.saved.IsZero() || begun.Sub(p.saved) < time.Minute {
		return err
	}
	p.saved = begun

	return p.store.SetPacked(ctx, begun)
}

// packDue packs what waits of a session. Its error is that of a store which is away, for the others.
func (p *Packer) packDue(ctx context.Context, key session, w *waiting) error {
	if len(w.came)+len(w.keep) == 1 && key.name != "" {
		w.came[0].Of = ""
		p.Add(key.account, w.came)
		return nil
	}

	keep, err := p.packSession(ctx, key.account, w)
	switch {
	case errors.Is(err, ErrChanged):
		p.Add(key.account, w.came)
		return nil
	case wire.IsCode(err, wire.CodeUnavailable):
		p.Add(key.account, w.came)
		return err
	case err != nil:
		p.logger.Error("bodies of a session could not be packed against each other; they stay as they are",
			"project", key.account, "error", err)
		return nil
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.sessions[key]; now != nil {
		now.keep = keep
	}

	return nil
}

// packSession packs what waits of a session, some records at a time.
func (p *Packer) packSession(ctx context.Context, account string, w *waiting) (keep []archive.UUID, err error) {
	keep = w.keep
	for came := w.came; len(came) > 0 && ctx.Err() == nil; {
		n, bytes := 0, 0
		ids := slices.Clone(keep)
		for n < len(came) && n < togetherMax && (n < 2 || bytes+came[n].Bytes <= bytesMax) {
			bytes += came[n].Bytes
			ids = append(ids, came[n].ID)
			n++
		}

		slices.SortFunc(ids, func(a, b archive.UUID) int { return strings.Compare(string(a[:]), string(b[:])) })
		ids = slices.Compact(ids)
		if len(ids) < 2 {
			return ids, nil
		}
		packed := 0
		err := p.store.Repack(ctx, account, ids, func(bodies []Body) (changed []Body, err error) {
			changed, keep, err = p.rule.Pack(p.codec, bodies)
			packed = len(changed)
			return changed, err
		})
		if err != nil {
			return nil, err
		}
		if packed > 0 {
			crashpoint.Reach(crashpoint.BodiesPacked)
		} else {
			// Nor have most of those that follow anything in common.
			n *= skipped
		}
		came = came[min(n, len(came)):]
	}

	return keep, nil
}

// recallBefore is how far before the end of an earlier process something may still wait that came then.
const recallBefore = time.Hour

// Recall packs what came before this process and may not have been packed. With a store of an earlier
// version that is everything. It reads the lists, newest first; calls that no list shows stay as they are.
func (p *Packer) Recall(ctx context.Context) error {
	until, err := p.store.Packed(ctx)
	if err != nil {
		return err
	}
	accounts, err := p.store.Accounts(ctx)
	if err != nil {
		return err
	}

	begun := p.now()
	var q query.Query
	if !until.IsZero() {
		after := wire.Where("accepted_at", "gt", until.Add(-recallBefore).UTC())
		q, err = query.CompileMatch(&after)
		if err != nil {
			return err
		}
	}
	for _, account := range accounts {
		if err := p.recall(ctx, account, q); err != nil {
			return err
		}
	}
	if err := p.PackAll(ctx); err != nil || ctx.Err() != nil {
		return err
	}

	p.packing.Lock()
	defer p.packing.Unlock()
	p.saved = begun

	return p.store.SetPacked(ctx, begun)
}

// recallStep is how many rows Recall reads at a time.
const recallStep = 10_000

// recall notes which calls an account has in its lists that match.
func (p *Packer) recall(ctx context.Context, account string, q query.Query) (err error) {
	const want = rowcode.PlaceColumns | 1<<rowcode.ColumnTrace | 1<<rowcode.ColumnMetadata
	for more := true; more && err == nil && ctx.Err() == nil; {
		var came []archive.Came
		more = false
		seen := 0
		_, err = p.store.Scan(ctx, account, q, want, func(row *wire.Row) (bool, error) {
			if id, ok := archive.ParseUUID(row.RequestID); ok {
				came = append(came, archive.Came{Of: nameOf(row), ID: id})
			}
			if seen++; seen == recallStep {
				at := query.PositionOf(row)
				q.After, more = &at, true
			}
			return !more, nil
		})
		p.Add(account, came)
		if err == nil {
			err = p.Pack(ctx)
		}
	}

	return err
}

// nameOf returns what a row belongs to, as Came.Of.
func nameOf(row *wire.Row) string {
	session := ""
	for _, m := range row.Metadata {
		if m.Key == dialect.SessionKey {
			session = rollup.Name(m.Value)
		}
	}
	return cmp.Or(session, row.TraceID)
}
