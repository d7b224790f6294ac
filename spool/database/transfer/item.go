package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
)

// Mover is a database that can be copied.
type Mover interface {
	archive.Store

	// Small returns everything that is not about records.
	Small() keyed.Store

	// Known returns the ids of all accounts that have records or tombstones.
	Known(ctx context.Context) ([]string, error)

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
	Unseen  bool      `json:"unseen,omitempty"` // there was no record when it was deleted; see archive.UnseenMax
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
		text, err := json.Marshal([]any{p.end.Of, t})
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
		text, err := json.Marshal([]any{p.end.Of, r.State, hashes})
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
