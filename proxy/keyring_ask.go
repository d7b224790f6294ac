package proxy

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"promptspool/api/wire"
)

const (
	firstUseWait    = 250 * time.Millisecond // how long a key's first use waits for a verdict
	verdictAge      = 30 * time.Second       // how long a verdict is taken without asking again
	askAgainDelay   = time.Second            // until the next question when one had no answer
	refreshEvery    = 10 * time.Second       // how often Run looks for verdicts that are too old
	refreshAtOnce   = 8                      // questions of Run under way at the same time
	questionTimeout = 5 * time.Second        // of one question
	questionsMax    = 64                     // at the same time; beyond them the server counts as away
)

// Asker is where verdicts come from. CodeUnauthorized and CodeForbidden are a refusal;
// any other error means that the server cannot be asked now.
type Asker interface {
	Verdict(ctx context.Context, key wire.Secret) (wire.KeyVerdict, error)
}

var errRefused = wire.Errorf(wire.CodeUnauthorized,
	"The server does not know this key, it was revoked, or it ended long ago. "+
		"`promptspool keys create`, run beside the server, makes one.")

// Authenticate judges a key. Only its first use waits for the server, for firstUseWait at
// most, as does one that was refused longer ago than verdictAge. Other verdicts are
// refreshed in the background, here and by Run, so that a revocation is seen within
// verdictAge, refreshEvery and a round trip. While the server cannot be asked the last
// verdict holds, and a key never seen gets an Identity that is not Verified. One of a key that has
// ended is marked as expired.
func (k *Keyring) Authenticate(ctx context.Context, secret wire.Secret) (wire.Identity, error) {
	if secret == "" || len(secret) > keyBytesMax {
		return wire.Identity{}, errRefused
	}

	hash := hashOf(secret)
	k.mu.Lock()
	id, state, stale := k.lookLocked(hash, secret)
	var answered <-chan struct{}
	if stale {
		answered = k.askLocked(hash, secret)
	}
	k.mu.Unlock()

	// Without a good verdict, the answer that we asked for is worth a short wait.
	if stale && (state == keyUnseen || state == keyRefused) {
		_ = sleep(ctx, firstUseWait, answered)
		k.mu.Lock()
		id, state, _ = k.lookLocked(hash, secret)
		k.mu.Unlock()
	}

	if state == keyRefused {
		return wire.Identity{}, errRefused
	}

	return id, nil
}

// lookLocked returns what is known of a key, and whether the server should be asked.
func (k *Keyring) lookLocked(
	hash [32]byte, secret wire.Secret,
) (id wire.Identity, state keyState, stale bool) {
	// A good key is not asked about while the server is away: its verdict holds. A
	// refused one is, because its caller waits for better news.
	now := time.Now()
	if key := k.byHash[hash]; key != nil {
		stale := !now.Before(key.askAt) && (key.state == keyRefused || !now.Before(k.awayUntil))
		return key.identity(k.now), key.state, stale
	}

	unverified := wire.Identity{Key: secret}
	if askAt, ok := k.refusals[hash]; ok {
		return unverified, keyRefused, !now.Before(askAt)
	}

	return unverified, keyUnseen, true
}

// askLocked asks the server about a key in the background, unless a question about it is
// under way. The channel closes when there is an answer, or none to be had.
func (k *Keyring) askLocked(hash [32]byte, secret wire.Secret) <-chan struct{} {
	if answered, ok := k.questions[hash]; ok {
		return answered
	}

	// So many at the same time are an attack or an outage, and not worth a goroutine
	// each. Callers without an answer are treated as if the server were away.
	answered := make(chan struct{})
	if len(k.questions) >= questionsMax || k.life.Err() != nil {
		close(answered)
		return answered
	}

	// It continues when the caller who asked has left: others wait for the same answer.
	k.questions[hash] = answered
	k.asking.Go(func() {
		ctx, cancel := context.WithTimeout(k.life, questionTimeout)
		defer cancel()
		verdict, err := k.asker.Verdict(ctx, secret)

		k.mu.Lock()
		defer k.mu.Unlock()
		k.learnLocked(hash, secret, verdict, err)
		delete(k.questions, hash)
		close(answered)
	})

	return answered
}

// learnLocked takes an answer in.
func (k *Keyring) learnLocked(hash [32]byte, secret wire.Secret, v wire.KeyVerdict, err error) {
	switch {
	case err == nil && v.Account != "":
		k.acceptLocked(hash, secret, v)
		return
	case wire.IsCode(err, wire.CodeUnauthorized) || wire.IsCode(err, wire.CodeForbidden):
		k.refuseLocked(hash)
		return
	}

	// There was no verdict. The last one holds, and the server is left alone for a while;
	// with questions about other keys, too, unless it means only this one.
	askAt := time.Now().Add(askAgainDelay)
	if !isOfKey(err) {
		k.awayUntil = askAt
	}
	if key := k.byHash[hash]; key != nil {
		key.askAt = askAt
	} else if _, ok := k.refusals[hash]; ok {
		k.refusals[hash] = askAt
	}
}

// acceptLocked notes that the server accepts a key.
func (k *Keyring) acceptLocked(hash [32]byte, secret wire.Secret, v wire.KeyVerdict) {
	delete(k.refusals, hash)
	key := k.byHash[hash]
	if key == nil {
		key = k.createLocked(hash, secret)
		if key == nil {
			return
		}
	}

	// The file is written only for news, which is rare; an fsync each half a minute
	// would not be.
	key.askAt = time.Now().Add(verdictAge)
	if key.state != keyGood || key.verdict != v || !key.saved {
		key.state, key.verdict = keyGood, v
		// The error is logged. A write that needs the file tries again.
		_ = k.saveLocked(key)
	}
}

// refuseLocked notes that the server does not accept a key.
func (k *Keyring) refuseLocked(hash [32]byte) {
	askAt := time.Now().Add(verdictAge)
	key := k.byHash[hash]
	if key == nil {
		k.rememberLocked(hash, askAt)
		return
	}

	key.askAt = askAt
	if key.state != keyRefused {
		k.logger.Warn("The server refuses a key. Its events are held, and new ones get 401.",
			"key", key.number, "was", key.state)
		key.state = keyRefused
		// The error is logged. After a restart the server is asked again.
		_ = k.saveLocked(key)
	}
	k.eraseUnusedLocked(key)
}

// Run refreshes the verdicts of all keys, the oldest first, until ctx ends; then
// it returns nil.
func (k *Keyring) Run(ctx context.Context) error {
	for {
		k.refresh(ctx)
		if sleep(ctx, refreshEvery, nil) != nil {
			return nil
		}
	}
}

// Doubt asks about all keys of an account: one of them may have been revoked. It waits for the
// answers.
func (k *Keyring) Doubt(account string) {
	k.mu.Lock()
	for _, key := range k.byNumber {
		if key.verdict.Account == account {
			key.askAt = time.Now()
		}
	}
	k.mu.Unlock()

	k.refresh(k.life)
}

// errAway ends a round of questions.
var errAway = errors.New("the server is away")

// refresh asks about the keys whose verdicts are too old.
func (k *Keyring) refresh(ctx context.Context) {
	// The first question goes alone: if it finds the server away, the verdicts hold.
	stale := k.stale()
	if len(stale) == 0 || !k.recheck(ctx, stale[0]) && k.away() {
		return
	}

	// Then several are under way, so that a round of thousands of keys is
	// over in seconds. Once the server is away, the rest is left for the next round.
	asking, round := errgroup.WithContext(ctx)
	asking.SetLimit(refreshAtOnce)
	for _, number := range stale[1:] {
		if round.Err() != nil {
			break
		}
		asking.Go(func() error {
			if !k.recheck(round, number) && k.away() {
				return errAway
			}
			return nil
		})
	}
	_ = asking.Wait()
}

// away reports whether the server did not answer lately.
func (k *Keyring) away() bool {
	k.mu.Lock()
	defer k.mu.Unlock()

	return time.Now().Before(k.awayUntil)
}

// stale returns the keys whose verdicts are too old, the oldest first. Refused ones are
// asked about when they are used, or when events of theirs are held.
func (k *Keyring) stale() []uint32 {
	k.mu.Lock()
	defer k.mu.Unlock()

	now := time.Now()
	var keys []*key
	for _, key := range k.byNumber {
		if key.state != keyRefused && !now.Before(key.askAt) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b *key) int { return a.askAt.Compare(b.askAt) })

	var numbers []uint32
	for _, key := range keys {
		numbers = append(numbers, key.number)
	}
	return numbers
}

// recheck asks the server about a key, waits for the answer, and reports whether
// it was a verdict.
func (k *Keyring) recheck(ctx context.Context, number uint32) bool {
	k.mu.Lock()
	key := k.byNumber[number]
	if key == nil {
		k.mu.Unlock()
		return true
	}
	answered := k.askLocked(key.hash, key.secret)
	k.mu.Unlock()

	select {
	case <-answered:
	case <-ctx.Done():
		return false
	}

	// Without a verdict the next question is askAgainDelay away at most; see learnLocked.
	k.mu.Lock()
	defer k.mu.Unlock()

	return key.askAt.After(time.Now().Add(askAgainDelay))
}

// accepted asks the server about a key, and reports whether it accepts it. No verdict
// is a no.
func (k *Keyring) accepted(ctx context.Context, number uint32) (is bool) {
	if k.recheck(ctx, number) {
		k.with(number, func(key *key) { is = key.state == keyGood })
	}

	return is
}
