package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed"
)

// Progress is how far a Copy is.
type Progress struct {
	Stage string // "copying", then "checking"

	// Done is what this stage has done. It may be read until told returns.
	Done Contents
}

// Copy copies everything in source into target, then proves that both hold the same.
// target must be empty, or hold what an unfinished Copy of the same source left there: what
// is there already is not written again. told is called after each step. Copy returns what
// both hold. The error is wire.CodeConflict if target holds something else; then nothing was
// changed.
//
// Setup codes count for neither: every server without an owner makes its own.
func Copy(ctx context.Context, source, target Mover, told func(Progress)) (Contents, error) {
	switch unfinished, err := Unfinished(ctx, source); {
	case err != nil:
		return nil, err
	// The copy of half a database would be proved as well.
	case unfinished:
		return nil, wire.Errorf(wire.CodeConflict,
			"The source is itself the target of a copy that is not finished. Finish that first.")
	}

	// A copy that was killed is begun again on what it has brought.
	begun, err := Unfinished(ctx, target)
	if err == nil && !begun {
		err = begin(ctx, target)
	}
	if err != nil {
		return nil, err
	}
	brought, err := bring(ctx, source, target, told)
	if err != nil {
		return nil, err
	}

	// Everything written is read back: only that proves the copy.
	there := Contents{}
	err = walk(ctx, target, func(p part) error {
		told(Progress{"checking", there})
		return there.add(p)
	})
	if err != nil {
		return nil, err
	}
	if !maps.Equal(brought, there) {
		return nil, wire.Errorf(wire.CodeInternal,
			"The copy is not the same as its source, which holds %v; the copy holds %v. "+
				"Did a server write to either meanwhile? Empty the target, and copy again.", brought, there)
	}

	return there, target.Small().Write(ctx, keyed.Entry{Key: copyingKey})
}

// copyingKey exists in a database while a copy into it is not finished. In 0.1.0 its value was how far
// the copy had come.
var copyingKey = keyed.Key{Kind: "copying"}

// Unfinished reports whether a copy into a database was begun and not finished. A server must
// not use it meanwhile.
func Unfinished(ctx context.Context, db Mover) (bool, error) {
	mark, err := db.Small().Get(ctx, copyingKey)
	return err == nil && mark[0] != nil, err
}

// errFound ends a walk at its first part.
var errFound = errors.New("there is something")

// begin marks an empty target as one that is being filled.
func begin(ctx context.Context, target Mover) error {
	err := walk(ctx, target, func(part) error { return errFound })
	if errors.Is(err, errFound) {
		return wire.Errorf(wire.CodeConflict, "The target is not empty. Give one that has not been used yet.")
	}
	if err != nil {
		return err
	}

	return target.Small().Write(ctx, keyed.Entry{Key: copyingKey, Value: json.RawMessage(`{}`)})
}

// part is some of what a database holds: entries, or tombstones or records of an account.
type part struct {
	account    string
	entries    []keyed.Entry
	tombstones []Tombstone
	records    []archive.Moved
}

// RecordsMax bounds the records, and the tombstones, of a step of a copy.
const RecordsMax = 200

const (
	entriesMax   = 100     // of a part; each may be a template of some size
	recordsBytes = 4 << 20 // of a part with several records
)

// walk calls fn with everything that a database holds, part by part.
func walk(ctx context.Context, db Mover, fn func(part) error) error {
	for after := (keyed.Key{}); ; {
		page, err := db.Small().Walk(ctx, after, entriesMax)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}

		after = page[len(page)-1].Key
		page = slices.DeleteFunc(page, func(e keyed.Entry) bool { return e.Key == copyingKey || accounts.IsSetup(e) })
		if len(page) == 0 {
			continue
		}
		if err := fn(part{entries: page}); err != nil {
			return err
		}
	}

	names, err := db.Accounts(ctx)
	for _, account := range names {
		if err == nil {
			err = walkAccount(ctx, db, account, fn)
		}
	}

	return err
}

// walkAccount is walk for one account.
func walkAccount(ctx context.Context, db Mover, account string, fn func(part) error) error {
	for last := (Tombstone{}); ; {
		page, err := db.Tombstones(ctx, account, last, RecordsMax)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}

		last = page[len(page)-1]
		if err := fn(part{account: account, tombstones: page}); err != nil {
			return err
		}
	}

	for last := ""; ; {
		ids, err := db.IDs(ctx, account, last, RecordsMax)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := readRecords(ctx, db, account, ids, fn); err != nil {
			return err
		}
		last = ids[len(ids)-1]
	}
}

// readers is how many records are read at the same time: each is a question to the database.
const readers = 4

// readRecords calls fn with records of an account, in one part or several.
func readRecords(ctx context.Context, db Mover, account string, ids []string, fn func(part) error) error {
	p := part{account: account}
	bytes := 0
	for some := range slices.Chunk(ids, readers) {
		read := make([]archive.Moved, len(some))
		var reading errgroup.Group
		for i, id := range some {
			reading.Go(func() (err error) {
				read[i].State, read[i].Bodies, err = db.Bodies(ctx, account, id)
				return err
			})
		}
		if err := reading.Wait(); err != nil {
			return err
		}

		for _, r := range read {
			weight := r.Weight()
			if len(p.records) > 0 && bytes+weight > recordsBytes {
				if err := fn(p); err != nil {
					return err
				}
				p.records, bytes = nil, 0
			}
			p.records, bytes = append(p.records, r), bytes+weight
		}
	}

	return fn(p)
}

// bring copies everything, and returns what it was. Bringing something again changes nothing.
func bring(ctx context.Context, source, target Mover, told func(Progress)) (Contents, error) {
	done := Contents{}
	err := walk(ctx, source, func(p part) error {
		err := done.add(p)
		if err == nil && len(p.tombstones) > 0 {
			err = target.Bury(ctx, p.account, p.tombstones)
		}
		if err == nil && len(p.records) > 0 {
			err = archive.Bring(ctx, target, p.account, p.records)
		}
		if err == nil && len(p.entries) > 0 {
			err = target.Small().Write(ctx, p.entries...)
		}
		told(Progress{"copying", done})
		return err
	})

	return done, err
}

// Mover is a database that can be copied.
type Mover interface {
	archive.Store

	// Small returns everything that is not about records.
	Small() keyed.Store

	// Tombstones returns up to limit tombstones of an account after after, always in the same
	// order. The zero value is before the first.
	Tombstones(ctx context.Context, account string, after Tombstone, limit int) ([]Tombstone, error)

	// Bury stores tombstones of another database, durably.
	Bury(ctx context.Context, account string, tombstones []Tombstone) error
}

// Tombstone keeps out a deleted record or, up to a moment, records with a deleted metadata value.
type Tombstone struct {
	OfValue bool      `json:"of_value,omitempty"`
	Key     [16]byte  `json:"key"` // of a record its id, of a value rowcode.HashValue
	At      time.Time `json:"at"`
}

// Contents counts what a database holds, by kind. A checksum that does not depend on the
// order of items makes Contents equal only where the contents are.
type Contents map[string]Holding

// Holding is what there is of one kind.
type Holding struct {
	Items  int64  `json:"items"`
	Events int64  `json:"events,omitempty"` // of records
	Sum    uint64 `json:"-"`
}

// String lists the kinds by name, for people.
func (c Contents) String() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", c[kind].Items, kind))
	}

	return strings.Join(kinds, ", ")
}

// add counts a part.
func (c Contents) add(p part) error {
	for _, e := range p.entries {
		// Quoted, so that no two entries have the same text.
		text := fmt.Appendf(nil, "%q %q %q ", e.Kind, e.Account, e.Name)
		c.addText(string(e.Kind), 0, append(text, e.Value...))
	}

	for _, t := range p.tombstones {
		// To the microsecond, because not every database keeps more.
		t.At = t.At.UTC().Truncate(time.Microsecond)
		text, err := json.Marshal([]any{p.account, t})
		if err != nil {
			return fmt.Errorf("a tombstone: %w", err)
		}
		c.addText("tombstones", 0, text)
	}

	for _, r := range p.records {
		// Bodies count byte by byte; encoding them as JSON would normalise them.
		hashes := make(map[string]string, len(r.Bodies))
		for id, body := range r.Bodies {
			hashes[id] = archive.HashBody(body)
		}
		// Each database derives it.
		r.State.Same = nil
		text, err := json.Marshal([]any{p.account, r.State, hashes})
		if err != nil {
			return fmt.Errorf("record %s: %w", r.State.RequestID, err)
		}
		c.addText("records", len(r.State.History), text)
	}

	return nil
}

func (c Contents) addText(kind string, events int, text []byte) {
	holding := c[kind]
	holding.Items++
	holding.Events += int64(events)
	sum := sha256.Sum256(text)
	// Modulo 2^64, so the order does not matter.
	holding.Sum += binary.LittleEndian.Uint64(sum[:8])
	c[kind] = holding
}
