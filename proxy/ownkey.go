package proxy

import (
	"context"
	"crypto/subtle"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
)

// OwnKey judges requests to a sidecar that has its own key. That key replaces whatever apps
// send: they hold no secret of the server's. Safe for concurrent use.
type OwnKey struct {
	keys *Keyring
	now  atomic.Pointer[ownKeys]
}

// ownKeys change together: no request is judged by one of before and one of after a change.
type ownKeys struct {
	own   wire.Secret
	local wire.Secret // what apps must present; "" for nothing
}

// NewOwnKey makes an OwnKey over a ring that the caller closes.
func NewOwnKey(keys *Keyring, own, local wire.Secret) *OwnKey {
	o := &OwnKey{keys: keys}
	o.Set(own, local)
	return o
}

// Set changes both keys for the requests that begin from now on. Earlier writes go out under
// the key of their time; if the server refuses that one by then, they are held.
func (o *OwnKey) Set(own, local wire.Secret) { o.now.Store(&ownKeys{own, local}) }

// Authenticate compares what an app presents with the local key, if there is one, and
// judges the sidecar's own.
func (o *OwnKey) Authenticate(ctx context.Context, presented wire.Secret) (wire.Identity, error) {
	now := o.now.Load()
	if now.local != "" {
		// Of hashes, so that the time does not depend on the key's length either.
		want, got := hashOf(now.local), hashOf(presented)
		if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			return wire.Identity{}, wire.Errorf(wire.CodeUnauthorized,
				"This sidecar accepts its local key only. Send the key that was set with --local-key.")
		}
	}

	// The app did nothing wrong if the server refuses our key: the message is
	// for the operator.
	id, err := o.keys.Authenticate(ctx, now.own)
	if wire.IsCode(err, wire.CodeUnauthorized) {
		return id, wire.Errorf(wire.CodeUnauthorized, "The server does not know this sidecar's own key, "+
			"or it was revoked. Give the sidecar another one by --api-key-file or PROMPTSPOOL_API_KEY.")
	}
	if err == nil && id.Expired {
		return wire.Identity{}, wire.Errorf(wire.CodeUnauthorized, "This sidecar's own key expired on %s. "+
			"Give the sidecar another one by --api-key-file or PROMPTSPOOL_API_KEY.", id.Expires.Format(time.RFC3339))
	}

	return id, err
}
