// Package keyedtest has the suite that every keyed.Store passes, and one in memory.
package keyedtest

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"promptspool/spool/database/keyed"
)

// Memory is a keyed.Store without a disk, for tests of what uses one. The zero value is
// empty. It is safe for concurrent use.
type Memory struct {
	changing sync.Mutex // held while a change runs

	mu      sync.Mutex
	entries []keyed.Entry // in the order of their keys; guarded by mu
}

// Get implements keyed.Reader.
func (m *Memory) Get(ctx context.Context, keys ...keyed.Key) ([]json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	values := make([]json.RawMessage, len(keys))
	for i, key := range keys {
		if at, found := m.find(key); found {
			values[i] = bytes.Clone(m.entries[at].Value)
		}
	}
	return values, ctx.Err()
}

// find returns where a key is, or would be. mu must be held.
func (m *Memory) find(key keyed.Key) (at int, found bool) {
	return slices.BinarySearchFunc(m.entries, key, func(e keyed.Entry, k keyed.Key) int { return e.Compare(k) })
}

// Scan implements keyed.Reader.
func (m *Memory) Scan(ctx context.Context, from keyed.Key, skip, limit int) (page []keyed.Entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	at, _ := m.find(from)
	for _, e := range m.entries[at:] {
		if e.Kind != from.Kind || e.Account != from.Account || len(page) == limit {
			break
		}
		if skip--; skip < 0 {
			page = append(page, keyed.Entry{Key: e.Key, Value: bytes.Clone(e.Value)})
		}
	}
	return page, ctx.Err()
}

// Change implements keyed.Store. Changes of all accounts run one after the other.
func (m *Memory) Change(ctx context.Context, _ string, _ bool, fn func(*keyed.Tx) error) error {
	m.changing.Lock()
	defer m.changing.Unlock()

	tx := keyed.NewTx(m)
	if err := fn(tx); err != nil {
		return err
	}
	return m.Write(ctx, tx.Entries()...)
}

// Write implements keyed.Store.
func (m *Memory) Write(ctx context.Context, entries ...keyed.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := ctx.Err(); err != nil {
		return err
	}
	for _, e := range entries {
		at, found := m.find(e.Key)
		switch {
		case e.Value == nil && found:
			m.entries = slices.Delete(m.entries, at, at+1)
		case found:
			m.entries[at].Value = e.Value
		case e.Value != nil:
			m.entries = slices.Insert(m.entries, at, e)
		}
	}
	return nil
}

// Walk implements keyed.Store.
func (m *Memory) Walk(ctx context.Context, after keyed.Key, limit int) ([]keyed.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	at, found := m.find(after)
	if found {
		at++
	}
	return slices.Clone(m.entries[at:min(at+limit, len(m.entries))]), ctx.Err()
}
