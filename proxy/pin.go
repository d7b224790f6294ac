package proxy

import (
	"time"

	"promptspool/api/wire"
)

const (
	unverifiedKeysMax = 64 // keys without a verdict that have events in the spool
	unverifiedPart    = 20 // their events may fill one part in so many of the spool
)

// pin returns the number of an identity's key for events of size bytes, and keeps the key until unpin. The key is on disk when
// it returns: an event whose key is lost could not be delivered. Writes of keys without a verdict are bounded in keys and
// bytes.
func (k *Keyring) pin(id wire.Identity, size int64) (uint32, error) {
	hash := hashOf(id.Key)
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.byHash[hash]
	switch {
	case key != nil && key.state == keyRefused:
		return 0, errRefused // since the call was authenticated
	case !id.Verified && (key == nil || key.state == keyUnknown):
		if err := k.admit(key, size); err != nil {
			return 0, err
		}
	}
	if key == nil {
		if key = k.make(hash, id.Key); key == nil {
			return 0, wire.Unavailable(5*time.Second, "Too many keys (%d) are in use at this sidecar. Use fewer, or wait until their events are delivered.", keysMax)
		}
	}
	if !key.saved {
		if err := k.save(key); err != nil {
			k.release(key)
			return 0, wire.Unavailable(5*time.Second, "The key could not be written to disk, so the write was not accepted: %w. Send it again when the sidecar's disk is well.", err)
		}
	}
	key.pins++
	key.pinBytes += size
	return key.number, nil
}

// unpin ends what pin began.
func (k *Keyring) unpin(number uint32, size int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.byNumber[number]
	key.pins--
	key.pinBytes -= size
	k.release(key)
}

// admit bounds what is taken on trust; known is nil for a key that is not in the ring. Bytes that are being appended count twice for
// that moment, so the bound is never passed. Called with the mutex held.
func (k *Keyring) admit(known *key, size int64) error {
	keys, bytes := 1, size
	for _, key := range k.byNumber {
		if key.state != keyUnknown {
			continue
		}
		events, b := k.spool.KeyUsage(key.number)
		if key != known && (events > 0 || key.pins > 0) {
			keys++
		}
		bytes += b + key.pinBytes
	}
	if keys > unverifiedKeysMax || bytes > k.share {
		return wire.Unavailable(5*time.Second, "The server cannot be asked about this key, and as much as may be was accepted on trust (%d keys, %d bytes). Send this again when the server is back.", unverifiedKeysMax, k.share)
	}
	return nil
}
