package proxy

import (
	"time"

	"promptspool/api/wire"
)

const (
	unverifiedKeysMax = 64 // keys without a verdict that have events in the spool
	unverifiedPart    = 20 // their events may fill one part in so many of the spool
)

// acquire returns the number of an identity's key for events of size bytes, and keeps the
// key until release. The key is on disk when it returns: an event whose key is lost could
// not be delivered. Writes of keys without a verdict are bounded in keys and bytes.
func (k *Keyring) acquire(id wire.Identity, size int64) (uint32, error) {
	hash := hashOf(id.Key)
	k.mu.Lock()
	defer k.mu.Unlock()

	key := k.byHash[hash]
	// The server may have refused it since the request was authenticated.
	if key != nil && key.state == keyRefused {
		return 0, errRefused
	}

	// Any caller could invent keys while the server is away, and fill the disk.
	if !id.Verified && (key == nil || key.state == keyUnknown) {
		if err := k.admitUnverifiedLocked(key, size); err != nil {
			return 0, err
		}
	}

	if key == nil {
		key = k.createLocked(hash, id.Key)
		if key == nil {
			return 0, wire.Unavailable(5*time.Second, "Too many keys (%d) are in use at this sidecar. "+
				"Use fewer, or wait until their events are delivered.", keysMax)
		}
	}
	// Most requests stop here: the file is written once. If that fails, the next
	// write tries again.
	if !key.saved {
		if err := k.saveLocked(key); err != nil {
			k.eraseUnusedLocked(key)
			return 0, wire.Unavailable(5*time.Second, "The key could not be written to disk, "+
				"so the write was not accepted: %w. Check the sidecar's disk, then send this again.", err)
		}
	}

	// From now on nothing erases the key, until its events are in the spool
	// and counted there.
	key.writes++
	key.writeBytes += size
	return key.number, nil
}

// release ends what acquire began.
func (k *Keyring) release(number uint32, size int64) {
	k.mu.Lock()
	defer k.mu.Unlock()

	key := k.byNumber[number]
	key.writes--
	key.writeBytes -= size
	k.eraseUnusedLocked(key)
}

// admitUnverifiedLocked bounds what is taken on trust. known is nil for a key that is
// not in the ring. Bytes that are being appended count twice for that moment, so the
// bound is never passed.
func (k *Keyring) admitUnverifiedLocked(known *key, size int64) error {
	keys, bytes := 1, size
	for _, key := range k.byNumber {
		if key.state != keyUnknown {
			continue
		}

		// A key that the request comes with counts once, whether or not it
		// has events already.
		events, b := k.spool.KeyUsage(key.number)
		if key != known && (events > 0 || key.writes > 0) {
			keys++
		}
		bytes += b + key.writeBytes
	}

	if keys > unverifiedKeysMax || bytes > k.share {
		return wire.Unavailable(5*time.Second, "The server cannot be asked about this key, and the sidecar "+
			"has accepted as much as it may without that (%d keys, %d bytes). "+
			"Send this again when the server is back.", unverifiedKeysMax, k.share)
	}

	return nil
}
