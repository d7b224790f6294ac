package proxy

import (
	"context"
	"slices"
	"sync"
	"time"

	"promptspool/api/wire"
)

const (
	firstUseWait    = 250 * time.Millisecond // how long a key's first use waits for the server's verdict
	verdictAge      = 30 * time.Second       // how long a verdict is taken without asking again
	askAgainDelay   = time.Second            // until the next question when one had no answer
	refreshEvery    = 10 * time.Second       // how often Run looks for verdicts that are too old
	refreshAtOnce   = 8                      // questions of Run under way at once
	questionTimeout = 5 * time.Second        // of one question
	questionsMax    = 64                     // under way at once; beyond them the server counts as away
)

// Asker is where verdicts come from. CodeUnauthorized and CodeForbidden are a refusal; any other error says that the server
// cannot be asked now.
type Asker interface {
	Verdict(ctx context.Context, key wire.Secret) (wire.KeyVerdict, error)
}

var errRefused = wire.Errorf(wire.CodeUnauthorized, "The server does not know this key, or it was revoked. `promptspool keys create`, run beside the server, makes one.")

// Authenticate judges a key. Only its first use waits for the server, for firstUseWait at most, as does one that was refused longer
// ago than verdictAge. Other verdicts are refreshed in the background, here and by Run, so that a revocation is seen within verdictAge,
// refreshEvery and a round trip. While the server cannot be asked the last verdict holds, and a key never seen is given an Identity that is not Verified.
func (k *Keyring) Authenticate(ctx context.Context, secret wire.Secret) (wire.Identity, error) {
	if secret == "" || len(secret) > keyBytesMax {
		return wire.Identity{}, errRefused
	}
	hash := hashOf(secret)
	k.mu.Lock()
	id, state, stale := k.look(hash, secret)
	var answered <-chan struct{}
	if stale {
		answered = k.ask(hash, secret)
	}
	k.mu.Unlock()

	if stale && (state == keyUnseen || state == keyRefused) {
		wait := time.NewTimer(firstUseWait)
		defer wait.Stop()
		select {
		case <-answered:
		case <-wait.C:
		case <-ctx.Done():
		}
		k.mu.Lock()
		id, state, _ = k.look(hash, secret)
		k.mu.Unlock()
	}
	if state == keyRefused {
		return wire.Identity{}, errRefused
	}
	return id, nil
}

// look says what is known of a key, and whether the server is to be asked. Called with the mutex held.
func (k *Keyring) look(hash [32]byte, secret wire.Secret) (id wire.Identity, state keyState, stale bool) {
	if key := k.byHash[hash]; key != nil {
		now := time.Now()
		return key.identity(), key.state, !now.Before(key.askAt) && (key.state == keyRefused || !now.Before(k.awayUntil))
	}
	unverified := wire.Identity{Key: secret}
	if askAt, ok := k.refusals[hash]; ok {
		return unverified, keyRefused, !time.Now().Before(askAt)
	}
	return unverified, keyUnseen, true
}

// ask puts a question to the server in the background, unless one about this key is under way. The channel closes when there is
// an answer, or none to be had. Called with the mutex held.
func (k *Keyring) ask(hash [32]byte, secret wire.Secret) <-chan struct{} {
	if answered, ok := k.questions[hash]; ok {
		return answered
	}
	answered := make(chan struct{})
	if len(k.questions) >= questionsMax || k.life.Err() != nil {
		close(answered)
		return answered
	}
	k.questions[hash] = answered
	k.asking.Go(func() {
		ctx, cancel := context.WithTimeout(k.life, questionTimeout)
		defer cancel()
		verdict, err := k.asker.Verdict(ctx, secret)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.learn(hash, secret, verdict, err)
		delete(k.questions, hash)
		close(answered)
	})
	return answered
}

// learn takes an answer in. Called with the mutex held.
func (k *Keyring) learn(hash [32]byte, secret wire.Secret, v wire.KeyVerdict, err error) {
	switch {
	case err == nil && v.Account != "":
		k.accept(hash, secret, v)
	case wire.IsCode(err, wire.CodeUnauthorized) || wire.IsCode(err, wire.CodeForbidden):
		k.refuse(hash)
	default:
		askAt := time.Now().Add(askAgainDelay)
		k.awayUntil = askAt
		if key := k.byHash[hash]; key != nil {
			key.askAt = askAt
		} else if _, ok := k.refusals[hash]; ok {
			k.refusals[hash] = askAt
		}
	}
}

// accept notes that the server takes a key. Called with the mutex held.
func (k *Keyring) accept(hash [32]byte, secret wire.Secret, v wire.KeyVerdict) {
	delete(k.refusals, hash)
	key := k.byHash[hash]
	if key == nil {
		if key = k.make(hash, secret); key == nil {
			return
		}
	}
	key.askAt = time.Now().Add(verdictAge)
	if key.state != keyGood || key.verdict != v || !key.saved {
		key.state, key.verdict = keyGood, v
		_ = k.save(key) // logged; a write that needs the file tries again
	}
}

// refuse notes that the server does not take a key. Called with the mutex held.
func (k *Keyring) refuse(hash [32]byte) {
	askAt := time.Now().Add(verdictAge)
	key := k.byHash[hash]
	if key == nil {
		k.remember(hash, askAt)
		return
	}
	key.askAt = askAt
	if key.state != keyRefused {
		k.logger.Warn("the server refuses a key; its events are held, and new ones get 401", "key", key.number, "was", key.state)
		key.state = keyRefused
		_ = k.save(key) // logged; after a restart the server is asked again
	}
	k.release(key)
}

// Run refreshes the verdicts of all keys, the oldest first, until ctx ends; then it returns nil.
func (k *Keyring) Run(ctx context.Context) error {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		k.refresh(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// refresh asks about the keys whose verdicts are too old. The first question goes alone: without an answer the server is away, and the
// verdicts hold. Then refreshAtOnce are under way, so that a round of thousands of keys is over in seconds.
func (k *Keyring) refresh(ctx context.Context) {
	stale := k.stale()
	if len(stale) == 0 || !k.recheck(ctx, stale[0]) {
		return
	}
	round, end := context.WithCancel(ctx)
	defer end()
	numbers := make(chan uint32)
	var asking sync.WaitGroup
	for range min(refreshAtOnce, len(stale)-1) {
		asking.Go(func() {
			for number := range numbers {
				if !k.recheck(round, number) {
					end()
				}
			}
		})
	}
	for _, number := range stale[1:] {
		if round.Err() == nil {
			numbers <- number
		}
	}
	close(numbers)
	asking.Wait()
}

// stale are the keys whose verdicts are too old, the oldest first. Refused ones are asked about when they are used, or when events
// of theirs are held.
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

// recheck asks the server about a key, waits for the answer, and says whether there was one.
func (k *Keyring) recheck(ctx context.Context, number uint32) bool {
	k.mu.Lock()
	key := k.byNumber[number]
	if key == nil {
		k.mu.Unlock()
		return true
	}
	answered := k.ask(key.hash, key.secret)
	k.mu.Unlock()
	select {
	case <-answered:
	case <-ctx.Done():
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return key.askAt.After(time.Now().Add(askAgainDelay))
}

// accepted asks the server about a key, and says whether it takes it. No answer is a no.
func (k *Keyring) accepted(ctx context.Context, number uint32) bool {
	if !k.recheck(ctx, number) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.byNumber[number]
	return key != nil && key.state == keyGood
}
