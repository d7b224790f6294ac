package proxy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"promptspool/api/wire"
	"promptspool/spool"
)

const (
	firstUseWait      = 250 * time.Millisecond // how long a key's first use waits for the server's verdict
	verdictAge        = 30 * time.Second       // how long a verdict is taken without asking again
	questionTimeout   = 5 * time.Second        // of one question to the server
	unverifiedKeysMax = 64                     // keys that wait for a verdict, with events in the spool
	unverifiedShare   = 20                     // their events may fill one part in so many of the spool
	refusedMax        = 1024                   // refused keys remembered in memory
	keysMax           = 4096                   // keys kept on disk
	keyBytesMax       = 4 << 10                // of one key
)

// Asker is where verdicts come from. CodeUnauthorized and CodeForbidden are a refusal; any other error says that the server
// cannot be asked now.
type Asker interface {
	Verdict(ctx context.Context, key wire.Secret) (wire.KeyVerdict, error)
}

// keyState is what is known of a key.
type keyState string

const (
	keyUnknown keyState = "unknown" // events were taken while the server could not be asked
	keyGood    keyState = "good"
	keyRefused keyState = "refused"
)

// key is one key of the ring. Its fields are under the ring's mutex; the exported ones are what its file holds.
type key struct {
	Number  uint32          `json:"number"`
	Secret  string          `json:"key"`
	State   keyState        `json:"state"`
	Verdict wire.KeyVerdict `json:"verdict"`

	hash  [32]byte
	asked time.Time // when the server was last asked about it; zero after a start
	pins  int       // writes on their way to the spool: the key must outlive them
}

// Keyring knows the keys that apps have used. It gives each a number, by which the spool names it, and keeps one small file per
// key (0600) with the last verdict, so that a restart while the server is away changes nothing. A key that is not good
// is erased when no event needs it any more. Safe for concurrent use.
type Keyring struct {
	dir    string
	asker  Asker
	spool  *spool.Spool
	share  int64 // bytes of the spool for unverified keys
	logger *slog.Logger
	now    func() time.Time

	flights singleflight.Group // one question at a time per key
	life    context.Context    // ends with Close, and all questions with it
	end     context.CancelFunc
	asking  sync.WaitGroup

	mu       sync.Mutex
	byHash   map[[32]byte]*key
	byNumber map[uint32]*key
	refused  map[[32]byte]time.Time // asked when; keys that are not in the ring
	next     uint32
}

// KeyringConfig is what a Keyring is made of.
type KeyringConfig struct {
	Dir           string
	Asker         Asker
	Spool         *spool.Spool
	SpoolBytesMax int64
	Logger        *slog.Logger
	Now           func() time.Time // nil means time.Now
}

// OpenKeyring reads the ring from its folder, which it creates when absent. A file that it cannot read is set aside, and the
// events of its key will be held.
func OpenKeyring(c KeyringConfig) (*Keyring, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	k := &Keyring{
		dir: c.Dir, asker: c.Asker, spool: c.Spool, share: c.SpoolBytesMax / unverifiedShare, logger: c.Logger, now: c.Now,
		byHash: map[[32]byte]*key{}, byNumber: map[uint32]*key{}, refused: map[[32]byte]time.Time{}, next: 1,
	}
	k.life, k.end = context.WithCancel(context.Background())
	for _, number := range c.Spool.Keys() {
		k.next = max(k.next, number+1)
	}
	keys, err := readKeys(c.Dir, c.Logger)
	for _, key := range keys {
		k.add(key)
	}
	return k, err
}

// Close ends the questions that are under way.
func (k *Keyring) Close() {
	k.end()
	k.asking.Wait()
}

func (k *Keyring) add(key *key) {
	key.hash = sha256.Sum256([]byte(key.Secret))
	k.byHash[key.hash] = key
	k.byNumber[key.Number] = key
	k.next = max(k.next, key.Number+1)
}

// Authenticate judges a key. Only its first use waits for the server, for firstUseWait at most; later verdicts are refreshed in
// the background, so that a revocation is seen within verdictAge and a round trip. While the server cannot be asked the last
// verdict holds, and a key never seen is given an Identity that is not Verified.
func (k *Keyring) Authenticate(ctx context.Context, secret wire.Secret) (wire.Identity, error) {
	if secret == "" || len(secret) > keyBytesMax {
		return wire.Identity{}, errRefused
	}
	hash := sha256.Sum256([]byte(secret))
	unverified := wire.Identity{Key: secret}
	id, state, asked := k.known(hash, unverified)
	stale := k.now().Sub(asked) > verdictAge
	switch {
	case state == keyGood:
		if stale {
			k.ask(hash, secret)
		}
		return id, nil
	case state == keyRefused && !stale:
		return id, errRefused
	case state == keyUnknown && !asked.IsZero():
		if k.now().Sub(asked) > time.Second {
			k.ask(hash, secret)
		}
		return id, nil
	}
	wait := time.NewTimer(firstUseWait)
	defer wait.Stop()
	select {
	case <-k.ask(hash, secret):
	case <-wait.C:
	case <-ctx.Done():
	}
	if id, state, _ = k.known(hash, unverified); state == keyRefused {
		return id, errRefused
	}
	return id, nil
}

var errRefused = wire.Errorf(wire.CodeUnauthorized, "The server does not know this key, or it was revoked. `promptspool keys create`, run beside the server, makes one.")

// known says what the ring knows of a key, and when that was asked; the zero time for a key that is not in the ring.
func (k *Keyring) known(hash [32]byte, unverified wire.Identity) (wire.Identity, keyState, time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := k.byHash[hash]; key != nil {
		if key.State == keyGood {
			return key.identity(), keyGood, key.asked
		}
		return unverified, key.State, key.asked
	}
	if asked, ok := k.refused[hash]; ok {
		return unverified, keyRefused, asked
	}
	return unverified, keyUnknown, time.Time{}
}

func (key *key) identity() wire.Identity {
	return wire.Identity{Account: key.Verdict.Account, KeyID: key.Verdict.KeyID, Scope: key.Verdict.Scope, Key: wire.Secret(key.Secret), Verified: true}
}

// ask puts a question to the server in the background; those about one key share the answer. The channel closes when there is
// one, or none to be had.
func (k *Keyring) ask(hash [32]byte, secret wire.Secret) <-chan struct{} {
	k.touch(hash)
	k.asking.Add(1)
	done := make(chan struct{})
	go func() {
		defer k.asking.Done()
		defer close(done)
		k.flights.Do(string(hash[:]), func() (any, error) {
			ctx, cancel := context.WithTimeout(k.life, questionTimeout)
			defer cancel()
			v, err := k.asker.Verdict(ctx, secret)
			k.learn(hash, secret, v, err)
			return nil, nil
		})
	}()
	return done
}

// touch notes that a key is being asked about, so that the calls that come meanwhile go by the verdict there is.
func (k *Keyring) touch(hash [32]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := k.byHash[hash]; key != nil {
		key.asked = k.now()
	} else if _, ok := k.refused[hash]; ok {
		k.refused[hash] = k.now()
	}
}

// learn takes a verdict in.
func (k *Keyring) learn(hash [32]byte, secret wire.Secret, v wire.KeyVerdict, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.byHash[hash]
	switch {
	case err == nil:
		delete(k.refused, hash)
		if known == nil {
			if known = k.make(hash, secret); known == nil {
				return
			}
		}
		known.asked = k.now()
		if known.State != keyGood || known.Verdict != v {
			known.State, known.Verdict = keyGood, v
			k.save(known)
		}
	case isRefusal(err) && known != nil:
		k.refuse(known)
	case isRefusal(err):
		k.remember(hash)
	case known != nil && known.State != keyUnknown:
		known.asked = k.now().Add(time.Second - verdictAge) // the verdict holds; ask again in a second
	}
}

// isRefusal says whether the server itself said no to the key.
func isRefusal(err error) bool {
	return wire.IsCode(err, wire.CodeUnauthorized) || wire.IsCode(err, wire.CodeForbidden)
}

// refuse notes that the server does not take a key of the ring. Called with the mutex held.
func (k *Keyring) refuse(key *key) {
	key.asked = k.now()
	if key.State != keyRefused {
		k.logger.Warn("the server refuses a key; its events are held, and new ones get 401", "key", key.Number, "was", key.State)
		key.State = keyRefused
		k.save(key)
	}
	if !k.needed(key) {
		k.erase(key)
		k.remember(key.hash)
	}
}

// needed says whether an event, spooled or about to be, goes by this key. Called with the mutex held.
func (k *Keyring) needed(key *key) bool {
	events, _ := k.spool.KeyUsage(key.Number)
	return events > 0 || key.pins > 0
}

// remember keeps a refused key's hash. When there are too many, any one makes room. Called with the mutex held.
func (k *Keyring) remember(hash [32]byte) {
	if len(k.refused) >= refusedMax {
		for h := range k.refused {
			delete(k.refused, h)
			break
		}
	}
	k.refused[hash] = k.now()
}

// make adds a key with the next number; nil when the ring is full. It is not on disk yet. Called with the mutex held.
func (k *Keyring) make(hash [32]byte, secret wire.Secret) *key {
	if len(k.byHash) >= keysMax && !k.evict() {
		k.logger.Warn("too many keys are in use; this one is asked about at every use", "keys", keysMax)
		return nil
	}
	key := &key{Number: k.next, Secret: string(secret), State: keyUnknown, hash: hash, asked: k.now()}
	k.add(key)
	return key
}

// evict erases the key that was asked about longest ago among those that no event needs. Called with the mutex held.
func (k *Keyring) evict() bool {
	var oldest *key
	for _, key := range k.byHash {
		if (oldest == nil || key.asked.Before(oldest.asked)) && !k.needed(key) {
			oldest = key
		}
	}
	if oldest != nil {
		k.erase(oldest)
	}
	return oldest != nil
}

// pin returns the number of an identity's key for events of size bytes, and keeps the key until unpin. The key is on disk when
// it returns: an event whose key is lost could not be delivered. Writes of keys without a verdict are bounded in keys and
// bytes.
func (k *Keyring) pin(id wire.Identity, size int64) (uint32, error) {
	hash := sha256.Sum256([]byte(id.Key))
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.byHash[hash]
	if !id.Verified {
		if err := k.admit(key, size); err != nil {
			return 0, err
		}
	}
	if key == nil {
		if key = k.make(hash, id.Key); key == nil {
			return 0, wire.Unavailable(5*time.Second, "Too many keys (%d) are in use at this sidecar. Use fewer, or wait until their events are delivered.", keysMax)
		}
		if err := k.save(key); err != nil {
			k.forget(key)
			return 0, wire.Unavailable(5*time.Second, "The key could not be written to disk, so the write was not accepted: %w", err)
		}
	}
	key.pins++
	return key.Number, nil
}

// unpin ends what pin began.
func (k *Keyring) unpin(number uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := k.byNumber[number]; key != nil {
		key.pins--
	}
}

// admit bounds what is taken on trust. Called with the mutex held.
func (k *Keyring) admit(known *key, size int64) error {
	keys, bytes := 0, size
	for _, key := range k.byHash {
		if key.State == keyUnknown {
			if _, b := k.spool.KeyUsage(key.Number); key == known || k.needed(key) {
				keys++
				bytes += b
			}
		}
	}
	if known == nil {
		keys++
	}
	if keys > unverifiedKeysMax || bytes > k.share {
		return wire.Unavailable(5*time.Second, "The server cannot be asked about this key, and as much as may be was accepted on trust (%d keys, %d bytes). Send this again when the server is back.", unverifiedKeysMax, k.share)
	}
	return nil
}

// secret returns the key that a number stands for.
func (k *Keyring) secret(number uint32) (wire.Secret, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.byNumber[number]
	if key == nil {
		return "", false
	}
	return wire.Secret(key.Secret), true
}

// refuseNumber notes that the server refused a batch of this key.
func (k *Keyring) refuseNumber(number uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := k.byNumber[number]; key != nil {
		k.refuse(key)
	}
}

// Identities gives one verified identity for each account, for what is asked of the server in an account's name.
func (k *Keyring) Identities() []wire.Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	seen := map[string]bool{}
	var ids []wire.Identity
	for _, key := range k.byHash {
		if key.State == keyGood && !seen[key.Verdict.Account] {
			seen[key.Verdict.Account] = true
			ids = append(ids, key.identity())
		}
	}
	return ids
}

func (k *Keyring) path(number uint32) string {
	return filepath.Join(k.dir, strconv.FormatUint(uint64(number), 10)+keySuffix)
}

const keySuffix = ".json"

// numberOf reads the number from a file's name.
func numberOf(name string) (uint32, error) {
	n, err := strconv.ParseUint(strings.TrimSuffix(name, keySuffix), 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("its name is no number")
	}
	return uint32(n), nil
}
