package authtest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"promptspool/api/wire"
)

// Memory is an auth.Store for tests, in memory only. Safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	keys     map[[32]byte]wire.Key // guarded by mu
	accounts map[string]string     // guarded by mu; ids by name
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{keys: map[[32]byte]wire.Key{}, accounts: map[string]string{}}
}

// CreateKey implements auth.Store.
func (m *Memory) CreateKey(_ context.Context, hash [32]byte, k wire.Key) (wire.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if stored, ok := m.keys[hash]; ok {
		if stored.RevokedAt != nil {
			return wire.Key{}, wire.Errorf(wire.CodeConflict, "The key %s was revoked.", stored.ID)
		}
		return stored, nil
	}

	// An account exists from its first key on.
	id, ok := m.accounts[k.AccountName]
	if !ok {
		id = wire.NewID()
		m.accounts[k.AccountName] = id
	}
	k.AccountID = id
	m.keys[hash] = k
	return k, nil
}

// KeyByHash implements auth.Store.
func (m *Memory) KeyByHash(_ context.Context, hash [32]byte) (wire.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	k, ok := m.keys[hash]
	if !ok {
		return wire.Key{}, wire.Errorf(wire.CodeNotFound, "No key has this hash.")
	}
	return clone(k), nil
}

// Keys implements auth.Store.
func (m *Memory) Keys(context.Context) ([]wire.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	keys := make([]wire.Key, 0, len(m.keys))
	for _, k := range m.keys {
		keys = append(keys, clone(k))
	}

	slices.SortFunc(keys, func(a, b wire.Key) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return keys, nil
}

// RevokeKey implements auth.Store.
func (m *Memory) RevokeKey(_ context.Context, id string, at time.Time) (wire.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	for hash, k := range m.keys {
		if k.ID != id {
			continue
		}

		// The first time stays.
		if k.RevokedAt == nil {
			k.RevokedAt = &at
			m.keys[hash] = k
		}
		return clone(k), nil
	}

	return wire.Key{}, wire.Errorf(wire.CodeNotFound, "No key has the id %s.", id)
}

// TouchKeys implements auth.Store.
func (m *Memory) TouchKeys(_ context.Context, used map[string]time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	for hash, k := range m.keys {
		if at, ok := used[k.ID]; ok && (k.LastUsedAt == nil || at.After(*k.LastUsedAt)) {
			k.LastUsedAt = &at
			m.keys[hash] = k
		}
	}
	return nil
}

// clone returns a key that shares no memory with the store.
func clone(k wire.Key) wire.Key {
	if k.LastUsedAt != nil {
		at := *k.LastUsedAt
		k.LastUsedAt = &at
	}
	if k.RevokedAt != nil {
		at := *k.RevokedAt
		k.RevokedAt = &at
	}
	return k
}
