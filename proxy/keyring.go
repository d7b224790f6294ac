package proxy

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

const (
	keysMax     = 4096            // keys in the ring, and on disk
	keyBytesMax = 4 << 10         // of one key
	refusedMax  = 1024            // refused keys remembered beside the ring
	eraseDelay  = 5 * time.Second // from a key's last event to its end, see eraseUnusedLocked
)

// keyState is what is known of a key.
type keyState string

const (
	keyUnseen  keyState = ""        // not in the ring, nor remembered as refused
	keyUnknown keyState = "unknown" // events were taken while the server could not be asked
	keyGood    keyState = "good"
	keyRefused keyState = "refused"
)

// key is one key of the ring. All but number, secret and hash is under the ring's mutex.
type key struct {
	number uint32
	secret wire.Secret
	hash   [32]byte

	state   keyState
	verdict wire.KeyVerdict // the last one that was good
	askAt   time.Time       // from when on the server should be asked again; zero after a start
	saved   bool            // its file is there; only then may an event name it

	writes     int   // on their way to the spool: the key must outlive them
	writeBytes int64 // theirs
	erasing    bool  // a timer looks whether it may go
}

// identity is the owner of this key, as far as it is known. now is the server's time.
func (key *key) identity(now func() time.Time) wire.Identity {
	if key.state != keyGood {
		return wire.Identity{Key: key.secret}
	}

	v := &key.verdict
	return wire.Identity{
		Account:  v.Account,
		KeyID:    v.KeyID,
		Scope:    v.Scope,
		Prefix:   v.Prefix,
		Expires:  v.ExpiresAt,
		Expired:  !v.ExpiresAt.IsZero() && !now().Before(v.ExpiresAt),
		Key:      key.secret,
		Verified: true,
	}
}

// Keyring knows the keys that apps have used. It gives each a number, by which the spool
// names it. It keeps one small file per key (0600) with the last verdict, so that a
// restart while the server is away changes nothing. A key that is not good is erased when
// no event needs it any more. Safe for concurrent use.
type Keyring struct {
	dir    string
	asker  Asker
	spool  *queue.Queue
	share  int64 // bytes of the spool for keys without a verdict
	now    func() time.Time
	logger *slog.Logger

	life   context.Context // ends with Close, and all questions with it
	end    context.CancelFunc
	asking sync.WaitGroup

	// mu is held while a key's file is written, which happens when its verdict changes.
	// Other requests wait for that fsync.
	mu        sync.Mutex
	byHash    map[[32]byte]*key
	byNumber  map[uint32]*key
	refusals  map[[32]byte]time.Time     // refused keys that are not in the ring, and when to ask again
	questions map[[32]byte]chan struct{} // under way, closed at their end
	awayUntil time.Time                  // the server did not answer: known keys are not asked about
}

// KeyringConfig is what a Keyring is made of. All fields are required.
type KeyringConfig struct {
	Dir           string // created when absent; it must hold nothing else
	Asker         Asker
	Spool         *queue.Queue
	SpoolBytesMax int64            // the bound of Spool
	Now           func() time.Time // the server's time, as far as it is known
	Logger        *slog.Logger
}

// OpenKeyring reads the ring from its folder, which it creates when absent. It sets aside
// a file that it cannot read; the events of that key will be held.
func OpenKeyring(c KeyringConfig) (*Keyring, error) {
	needed := c.Spool.Keys()
	keys, err := readKeys(c.Dir, needed, c.Logger)
	if err != nil {
		return nil, err
	}

	k := &Keyring{
		dir:       c.Dir,
		asker:     c.Asker,
		spool:     c.Spool,
		share:     c.SpoolBytesMax / unverifiedPart,
		now:       c.Now,
		logger:    c.Logger,
		byHash:    map[[32]byte]*key{},
		byNumber:  map[uint32]*key{},
		refusals:  map[[32]byte]time.Time{},
		questions: map[[32]byte]chan struct{}{},
	}
	k.life, k.end = context.WithCancel(context.Background())

	// Erase now what a killed process could not.
	for _, key := range keys {
		k.addLocked(key)
		if key.state != keyGood && !slices.Contains(needed, key.number) {
			k.eraseLocked(key)
		}
	}

	return k, nil
}

// Close ends the questions that are under way, and asks no more.
func (k *Keyring) Close() {
	k.mu.Lock()
	k.end()
	k.mu.Unlock()

	k.asking.Wait()
}

// createLocked adds a key; nil when the ring is full. It is not on disk yet.
func (k *Keyring) createLocked(hash [32]byte, secret wire.Secret) *key {
	if len(k.byNumber) >= keysMax && !k.evictLocked() {
		k.logger.Warn("Too many keys are in use. Another one is refused.", "keys", keysMax)
		return nil
	}

	// The number is random, so that none is ever given to a second key: events of the
	// first that came back, from a damaged spool, would go out under it.
	number := rand.Uint32()
	for number == 0 || k.byNumber[number] != nil {
		number = rand.Uint32()
	}
	key := &key{number: number, secret: secret, hash: hash, state: keyUnknown}
	k.addLocked(key)

	return key
}

func (k *Keyring) addLocked(key *key) {
	k.byHash[key.hash] = key
	k.byNumber[key.number] = key
}

// evictLocked erases one good key that no event needs, in the spool or in a lane. If it
// is used again, the server is asked about it again.
func (k *Keyring) evictLocked() bool {
	var idle []*key
	for _, key := range k.byNumber {
		if key.state == keyGood && !k.inUseLocked(key) {
			idle = append(idle, key)
		}
	}

	// The lanes come second. An event that went from the spool to a lane since then is in
	// the lane now, and one that came back is in the spool.
	needed := k.spool.Keys()
	var oldest *key
	for _, key := range idle {
		_, found := slices.BinarySearch(needed, key.number)
		if !found && (oldest == nil || key.askAt.Before(oldest.askAt)) {
			oldest = key
		}
	}
	if oldest == nil {
		return false
	}

	k.eraseLocked(oldest)
	return true
}

// inUseLocked reports whether an event in the spool, or on its way there, goes
// by this key.
func (k *Keyring) inUseLocked(key *key) bool {
	events, _ := k.spool.KeyUsage(key.number)
	return events > 0 || key.writes > 0
}

// eraseUnusedLocked erases a key that is not good once no event needs it, in the spool or
// in a lane. It looks after a while: what was acknowledged a moment ago comes back if the
// process is killed now, and must find its key.
func (k *Keyring) eraseUnusedLocked(key *key) {
	if key.state == keyGood || key.erasing || k.inUseLocked(key) {
		return
	}

	key.erasing = true
	time.AfterFunc(eraseDelay, func() {
		// Not under the mutex: it may wait for a lane.
		held := slices.Contains(k.spool.Keys(), key.number)
		k.mu.Lock()
		defer k.mu.Unlock()

		// It may have been used, accepted or erased meanwhile.
		key.erasing = false
		unused := !held && key.state != keyGood && !k.inUseLocked(key)
		if unused && k.byNumber[key.number] == key && k.life.Err() == nil {
			k.eraseLocked(key)
		}
	})
}

// eraseLocked forgets a key and removes its file.
func (k *Keyring) eraseLocked(key *key) {
	// A refused key is remembered, or its next use would ask the server, and
	// wait for that.
	delete(k.byHash, key.hash)
	delete(k.byNumber, key.number)
	if key.state == keyRefused {
		k.rememberLocked(key.hash, key.askAt)
	}
	k.remove(key)
}

// rememberLocked keeps a refused key's hash until it is asked about again. When there are
// too many, any one makes space.
func (k *Keyring) rememberLocked(hash [32]byte, askAt time.Time) {
	if _, ok := k.refusals[hash]; !ok && len(k.refusals) >= refusedMax {
		for h := range k.refusals {
			delete(k.refusals, h)
			break
		}
	}

	k.refusals[hash] = askAt
}

// with calls fn for the key with a number, if it is in the ring. mu is held meanwhile.
func (k *Keyring) with(number uint32, fn func(*key)) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if key := k.byNumber[number]; key != nil {
		fn(key)
	}
}

// secret returns the key with this number.
func (k *Keyring) secret(number uint32) (secret wire.Secret, ok bool) {
	k.with(number, func(key *key) { secret, ok = key.secret, true })
	return secret, ok
}

// refused notes that the server refused a batch of this key.
func (k *Keyring) refused(number uint32) {
	k.with(number, func(key *key) { k.refuseLocked(key.hash) })
}

// acked notes that events of this key left the spool.
func (k *Keyring) acked(number uint32) { k.with(number, k.eraseUnusedLocked) }

// Identities returns a verified identity for each account with a key that has one of some rights.
// They ask the server in the account's name. A key with a prefix is the last choice.
func (k *Keyring) Identities(rights wire.Scope) []wire.Identity {
	k.mu.Lock()
	defer k.mu.Unlock()

	best := map[string]wire.Identity{}
	for _, key := range k.byNumber {
		id := key.identity(k.now)
		known, ok := best[id.Account]
		if id.Allows(rights) && !id.Expired && (!ok || known.Prefix != "" && id.Prefix == "") {
			best[id.Account] = id
		}
	}

	return slices.Collect(maps.Values(best))
}

func hashOf(secret wire.Secret) [32]byte {
	// A key is shorter, so that its bytes are not allocated.
	var buffer [128]byte
	return sha256.Sum256(append(buffer[:0], secret...))
}

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
