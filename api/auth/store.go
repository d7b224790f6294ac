package auth

import (
	"context"
	"time"

	"promptspool/api/wire"
)

// Store keeps accounts and keys. Its methods may be called at the same time; what they return belongs to the caller. A
// write is durable when its method returns. Times keep microseconds at least. Besides the errors named below a store
// returns what says that it could not answer, such as wire.CodeUnavailable.
type Store interface {
	// CreateKey keeps k under the hash of its secret and returns it with AccountID set: that of the account called
	// k.AccountName, which is made with a UUIDv7 if there is none. The caller gives all else; k.ID is fresh. A hash that
	// is there already is left alone: its key is returned as it is stored, or, if it is revoked, wire.CodeConflict.
	CreateKey(ctx context.Context, hash [32]byte, k wire.Key) (wire.Key, error)
	// KeyByHash finds a key, also a revoked one (RevokedAt is set then); wire.CodeNotFound if there is none.
	KeyByHash(ctx context.Context, hash [32]byte) (wire.Key, error)
	// Keys lists the keys of all accounts, revoked ones too, by CreatedAt with the oldest first, then by ID.
	Keys(ctx context.Context) ([]wire.Key, error)
	// RevokeKey sets RevokedAt and returns the key; wire.CodeNotFound if there is none with this id. A key that was
	// revoked before keeps its first time.
	RevokeKey(ctx context.Context, id string, at time.Time) (wire.Key, error)
}
