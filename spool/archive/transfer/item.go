package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Item is one thing that is copied from one database to another. One of its
// pointers is set.
type Item struct {
	// Of the server.
	Account *wire.Account         `json:"account,omitempty"`
	Key     *Hashed[wire.Key]     `json:"key,omitempty"`
	User    *Person               `json:"user,omitempty"`
	Invite  *Hashed[wire.Invite]  `json:"invite,omitempty"`
	Session *Hashed[wire.Session] `json:"session,omitempty"`

	// Of one account, by its id.
	Of        string             `json:"of,omitempty"`
	Audit     *wire.AuditEntry   `json:"audit,omitempty"`
	Sidecar   *wire.FleetSidecar `json:"sidecar,omitempty"`
	Registry  *archive.Registry  `json:"registry,omitempty"`
	Template  *wire.Template     `json:"template,omitempty"`
	Version   *wire.Version      `json:"version,omitempty"`
	Tombstone *Tombstone         `json:"tombstone,omitempty"`
	Forgotten *Forgotten         `json:"forgotten,omitempty"`
	Record    *Record            `json:"record,omitempty"`
}

// Hashed is what is found by the SHA-256 of a secret.
type Hashed[T any] struct {
	Hash [32]byte `json:"hash"`
	Of   T        `json:"of"`
}

// Person is a user who signs in.
type Person struct {
	wire.User
	Password string `json:"password"` // its hash
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

// Mover is a database that can be copied. Nobody else may write to either one meanwhile.
type Mover interface {
	// Export calls fn with every item behind place and the item's own place,
	// always in the same order; "" is before the first. fn owns the item. Export
	// ends with fn's error.
	Export(ctx context.Context, place string, fn func(item Item, place string) error) error

	// Import stores items, and that a copy has come as far as place in its source,
	// durably and in one transaction. Importing an item twice changes nothing.
	Import(ctx context.Context, items []Item, place string) error

	// Copying returns how far an unfinished copy into this database has come. A server
	// must not use a database meanwhile.
	Copying(ctx context.Context) (place string, unfinished bool, err error)

	// Copied marks the copy as finished.
	Copied(ctx context.Context) error
}

// Bounds of what Import is given at once. A larger item comes alone.
const (
	ImportItemsMax = 200
	ImportBytesMax = 4 << 20
)

// Bytes returns about how many bytes an item has.
func (i *Item) Bytes() (n int) {
	switch {
	case i.Record != nil:
		n = i.Record.State.Weight()
		for _, body := range i.Record.Bodies {
			n += len(body)
		}
	case i.Version != nil:
		n = len(i.Version.Blueprint) + len(i.Version.Metadata)
	case i.Template != nil:
		// What its versions say are items of their own.
		n = 100 * (len(i.Template.Versions) + len(i.Template.Moves))
	}
	// About what the other members take.
	return n + 200
}

// Kind returns what the item is, for people.
func (i *Item) Kind() string {
	switch {
	case i.Account != nil:
		return "accounts"
	case i.Key != nil:
		return "keys"
	case i.User != nil:
		return "people"
	case i.Invite != nil:
		return "invites"
	case i.Session != nil:
		return "sessions"
	case i.Audit != nil:
		return "audit entries"
	case i.Sidecar != nil:
		return "sidecars"
	case i.Registry != nil:
		return "registries"
	case i.Template != nil:
		return "templates"
	case i.Version != nil:
		return "template versions"
	// Both keep out what was deleted, and that is all that people want to know.
	case i.Tombstone != nil, i.Forgotten != nil:
		return "tombstones"
	}

	return "records"
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
	i = i.rounded()
	if i.Record != nil {
		// Bodies count byte by byte; encoding them as JSON would normalise them.
		bodies := make(map[string]json.RawMessage, len(i.Record.Bodies))
		for id, body := range i.Record.Bodies {
			bodies[id] = json.RawMessage(`"` + archive.HashBody(body) + `"`)
		}
		i.Record = &Record{i.Record.State, bodies}
	}

	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(i); err != nil {
		return fmt.Errorf("%s: %w", i.Kind(), err)
	}
	sum := sha256.Sum256(text.Bytes())

	kind := c[i.Kind()]
	kind.Items++
	if i.Record != nil {
		kind.Events += int64(len(i.Record.State.History))
	}
	for n, b := range sum[:8] {
		kind.Sum += uint64(b) << (8 * n) // modulo 2^64, so the order does not matter
	}
	c[i.Kind()] = kind

	return nil
}

// rounded is the item with the times that a database may round to the microsecond
// cut to it.
func (i Item) rounded() Item {
	cut := func(t *time.Time) { *t = t.UTC().Truncate(time.Microsecond) }
	cutPointer := func(t **time.Time) {
		if *t != nil {
			at := **t
			cut(&at)
			*t = &at
		}
	}

	// Copies are changed, because the caller goes on with the item. What is not here is
	// kept as JSON in every database, with all of its digits.
	switch {
	case i.Account != nil:
		a := *i.Account
		cut(&a.CreatedAt)
		i.Account = &a
	case i.Key != nil:
		k := *i.Key
		cut(&k.Of.CreatedAt)
		cutPointer(&k.Of.RevokedAt)
		cutPointer(&k.Of.LastUsedAt)
		i.Key = &k
	case i.User != nil:
		u := *i.User
		cut(&u.CreatedAt)
		cut(&u.SessionsFrom)
		cutPointer(&u.DisabledAt)
		i.User = &u
	case i.Invite != nil:
		v := *i.Invite
		cut(&v.Of.CreatedAt)
		cut(&v.Of.ExpiresAt)
		i.Invite = &v
	case i.Session != nil:
		s := *i.Session
		cut(&s.Of.CreatedAt)
		cut(&s.Of.ExpiresAt)
		i.Session = &s
	case i.Sidecar != nil:
		s := *i.Sidecar
		cut(&s.LastSeen)
		i.Sidecar = &s
	case i.Tombstone != nil:
		t := *i.Tombstone
		cut(&t.At)
		i.Tombstone = &t
	case i.Forgotten != nil:
		f := *i.Forgotten
		cut(&f.Before)
		i.Forgotten = &f
	}

	return i
}
