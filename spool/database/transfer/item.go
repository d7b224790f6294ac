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

// Item is one thing of an account's records that is copied from one database to another. One
// of its pointers is set.
type Item struct {
	Of        string     `json:"of"` // the account's id
	Tombstone *Tombstone `json:"tombstone,omitempty"`
	Forgotten *Forgotten `json:"forgotten,omitempty"`
	Record    *Record    `json:"record,omitempty"`
}

// Tombstone rejects a record that was deleted.
type Tombstone struct {
	RequestID string    `json:"request_id"`
	At        time.Time `json:"at"`
	Unseen    bool      `json:"unseen,omitempty"` // there was no record when it was deleted; see UnseenMax
}

// Forgotten rejects records with a deleted metadata value, up to a moment.
type Forgotten struct {
	Hash   [16]byte  `json:"hash"` // HashValue
	Before time.Time `json:"before"`
}

// Record is a record with the bodies that are kept of its events, by event id.
type Record struct {
	State  archive.State              `json:"state"`
	Bodies map[string]json.RawMessage `json:"bodies"`
}

// Mover is a database that can be copied. Nothing else may write to either one meanwhile.
type Mover interface {
	// Small returns everything that is not about records.
	Small() keyed.Store

	// Export calls fn with every item after place and the item's own place,
	// always in the same order; "" is before the first. fn owns the item. Export
	// ends with fn's error.
	Export(ctx context.Context, place string, fn func(item Item, place string) error) error

	// Import stores items and a mark of how far a copy has come, durably and in one
	// transaction. Importing an item twice changes nothing.
	Import(ctx context.Context, items []Item, mark keyed.Entry) error
}

// Bounds of one call of Import. A larger item comes alone.
const (
	ImportItemsMax = 200
	ImportBytesMax = 4 << 20
)

// Bytes returns about how many bytes an item has.
func (i *Item) Bytes() int {
	n := 200 // about what the other members take
	if i.Record != nil {
		n += i.Record.State.Weight()
		for _, body := range i.Record.Bodies {
			n += len(body)
		}
	}
	return n
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

// Add counts an item. Times outside of histories are compared to the microsecond, because
// not every database keeps more.
func (c Contents) Add(i Item) error {
	kind, events := "tombstones", 0
	switch {
	// Both keep out what was deleted, and only that matters to people.
	case i.Tombstone != nil:
		t := *i.Tombstone // a copy: the caller continues with the item
		t.At = t.At.UTC().Truncate(time.Microsecond)
		i.Tombstone = &t
	case i.Forgotten != nil:
		f := *i.Forgotten
		f.Before = f.Before.UTC().Truncate(time.Microsecond)
		i.Forgotten = &f
	default:
		kind, events = "records", len(i.Record.State.History)
		// Bodies count byte by byte; encoding them as JSON would normalise them.
		bodies := make(map[string]json.RawMessage, len(i.Record.Bodies))
		for id, body := range i.Record.Bodies {
			bodies[id] = json.RawMessage(`"` + archive.HashBody(body) + `"`)
		}
		state := i.Record.State
		state.Same = nil // each database derives it
		i.Record = &Record{state, bodies}
	}

	text, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	c.add(kind, events, text)
	return nil
}

// AddEntry counts an entry.
func (c Contents) AddEntry(e keyed.Entry) {
	// Quoted, so that no two entries have the same text.
	text := fmt.Appendf(nil, "%q %q %q ", e.Kind, e.Account, e.Name)
	c.add(string(e.Kind), 0, append(text, e.Value...))
}

func (c Contents) add(kind string, events int, text []byte) {
	holding := c[kind]
	holding.Items++
	holding.Events += int64(events)
	sum := sha256.Sum256(text)
	holding.Sum += binary.LittleEndian.Uint64(sum[:8]) // modulo 2^64, so the order does not matter
	c[kind] = holding
}
