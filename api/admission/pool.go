// Package admission decides which requests get what they need: memory, a place, a turn. It
// reads their bodies as far as there is memory for them, so that hostile or slow callers can
// neither exhaust it nor keep others out.
//
// A Pool counts what callers hold at the same time, and refuses what does not fit. A Queue
// makes callers wait for their turn. A Limiter bounds what a key does in a second. All three
// are fair: one key, however many requests it makes, does not keep out the others. A Room is
// memory for the copies that are made of large bodies.
//
// An Intake reads bodies, unpacks them, and claims every byte of memory before it is used. A
// Body is read in one step. A Batch, which sidecars send, is read in two, and only after its
// key is known.
//
//	what is bounded                  by       owner             beyond the bound
//	request bodies, in bytes         Pool     key or anonymous  503
//	batches of events, in bytes      Pool     key               429 (the key's share), 503
//	long polls                       Pool     key               answered without waiting
//	exports                          Pool     key or person     429 (the owner's), 503
//	writes being recorded, in bytes  Queue    key               waits 10 s, then 503
//	batches being unpacked           Queue    key               waits
//	requests and bytes in a second   Limiter  key               429
//	copies of large bodies, in bytes Room     request           waits 10 s, then 503; alone too large: 413
//
// Connections are bounded elsewhere (api/edge), before there is a request or a key: no
// caller is asked to wait, but the slowest connection is closed.
package admission

import (
	"errors"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
)

// Why a claim is refused.
var (
	ErrFull  = errors.New("nothing is left")              // less than the claim needs
	ErrShare = errors.New("the owner's share is used up") // it holds as much as is fair to others
)

// Rules say how a Pool is divided.
type Rules struct {
	Size int64

	// Share returns how much an owner may hold. others is what its other claims hold, and free
	// what would be left of the pool if the claim got what it needs.
	Share func(owner string, others, free int64) int64

	// A claim of up to SmallMax is small: its owner's share does not count. SmallSize of the
	// pool is for small claims only.
	SmallMax, SmallSize int64

	// Watch is called with how much more is held, whenever that has changed. It may be nil.
	Watch func(more int64)
}

// Fixed gives each owner the same share.
func Fixed(share int64) func(string, int64, int64) int64 {
	return func(string, int64, int64) int64 { return share }
}

// LeftOver gives an owner, beside its first claim, as much as is left over. One greedy owner
// gets a half, two get a third each, and so on: there is always room for another one.
// (Choudhury and Hahne, "Dynamic queue length thresholds", 1998, with a factor of 1.)
func LeftOver(_ string, others, free int64) int64 {
	if others == 0 || free < 0 {
		// This is its first claim, or one for which the pool itself is too small.
		return math.MaxInt64
	}
	return free
}

// Pool bounds what callers hold at the same time. Safe for concurrent use.
type Pool struct {
	rules Rules

	mu   sync.Mutex
	free int64            // under mu
	held map[string]int64 // under mu; in claims that are not small, by owner; none is 0
}

// NewPool makes a Pool of which nothing is held.
func NewPool(rules Rules) *Pool {
	return &Pool{rules: rules, free: rules.Size, held: map[string]int64{}}
}

// Claim is what one caller holds of a Pool. It is used by one goroutine at a time.
type Claim struct {
	pool  *Pool
	owner string
	held  int64
}

// Claim returns an owner's claim that holds nothing yet.
func (p *Pool) Claim(owner string) Claim { return Claim{pool: p, owner: owner} }

// Owner returns whose claim it is.
func (c *Claim) Owner() string { return c.owner }

// Held returns what the claim holds.
func (c *Claim) Held() int64 { return c.held }

// Resize makes the claim hold so much. To hold less always succeeds. If it is to hold more than
// there is for it, Resize returns ErrShare or ErrFull, and the claim holds what it did.
func (c *Claim) Resize(size int64) error {
	p := c.pool
	p.mu.Lock()
	defer p.mu.Unlock()

	if err := c.checkLocked(size); err != nil {
		return err
	}

	p.free -= size - c.held
	p.countLocked(c.owner, p.rules.shared(size)-p.rules.shared(c.held))
	if p.rules.Watch != nil && size != c.held {
		p.rules.Watch(size - c.held)
	}
	c.held = size

	return nil
}

// Check returns what Resize would return now, and claims nothing.
func (c *Claim) Check(size int64) error {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()

	return c.checkLocked(size)
}

func (c *Claim) checkLocked(size int64) error {
	// A claim that shrinks, or stays as it is, needs nothing from the pool.
	if size <= c.held {
		return nil
	}

	p := c.pool
	after := p.rules.shared(size)
	free := p.free - (size - c.held)
	others := p.held[c.owner] - p.rules.shared(c.held)
	switch {
	case after > 0 && others+after > p.rules.Share(c.owner, others, free):
		return ErrShare
	case free < 0, after > 0 && free < p.rules.SmallSize:
		return ErrFull
	}

	return nil
}

// Release gives back everything that the claim holds.
func (c *Claim) Release() { _ = c.Resize(0) }

// Pass makes the claim another owner's. It may take that one beyond its share.
func (c *Claim) Pass(owner string) {
	p := c.pool
	p.mu.Lock()
	defer p.mu.Unlock()

	shared := p.rules.shared(c.held)
	p.countLocked(c.owner, -shared)
	p.countLocked(owner, shared)
	c.owner = owner
}

// countLocked adds to what an owner holds.
func (p *Pool) countLocked(owner string, more int64) {
	if more == 0 {
		return
	}

	// Without those that hold nothing, the map does not grow with the number of owners.
	p.held[owner] += more
	if p.held[owner] == 0 {
		delete(p.held, owner)
	}
}

// shared returns what a claim of this size counts towards its owner's share.
func (r *Rules) shared(size int64) int64 {
	if size <= r.SmallMax {
		return 0
	}
	return size
}

// Limits bound what one key may do in a second; 0 means no bound. A key may use a second's
// worth at the same moment.
type Limits struct {
	Calls float64
	Bytes float64 // of bodies, unpacked
}

// limitedKeysMax bounds how many keys are watched at the same time.
const limitedKeysMax = 4096

// Limiter holds keys to limits. Safe for concurrent use; the zero value lets everything pass.
//
// It does not use golang.org/x/time/rate, which never allows more than a second's worth in one
// piece. Here a request may take more bytes than that, and the key's next requests wait for it.
type Limiter struct {
	limits atomic.Pointer[Limits]

	mu   sync.Mutex
	used map[wire.Secret]usage // under mu
}

// usage says until when a key has used what it gets (the generic cell rate algorithm): a
// request, or a byte, moves the time by as much as the limit takes to give another one.
type usage struct{ calls, bytes time.Time }

// Set puts limits in force, for all requests from now on.
func (l *Limiter) Set(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if before := l.limits.Swap(&limits); before == nil || *before != limits {
		// A debt at another rate would last too long, or not long enough.
		l.used = map[wire.Secret]usage{}
	}
}

// Take counts a request with a body of so many bytes. If the request is not allowed, it
// counts nothing, and returns how long the key has to wait, and for which limit: "calls"
// or "bytes".
func (l *Limiter) Take(key wire.Secret, bytes int, now time.Time) (wait time.Duration, limit string) {
	if limits := l.limits.Load(); limits == nil || *limits == (Limits{}) {
		return 0, ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()

	limits := *l.limits.Load()
	u, known := l.used[key]
	if !known && len(l.used) >= limitedKeysMax {
		l.forgetLocked(now)
	}
	u = usage{latest(u.calls, now), latest(u.bytes, now)}

	// A second's worth ahead of now is allowed, or one request where a second gives less than one.
	each := seconds(1, limits.Calls)
	if wait := u.calls.Sub(now) + each - max(time.Second, each); wait > 0 {
		return wait, "calls"
	}
	if wait := u.bytes.Sub(now) - time.Second; wait >= 0 {
		return wait + seconds(1, limits.Bytes), "bytes"
	}

	l.used[key] = usage{u.calls.Add(each), u.bytes.Add(seconds(float64(bytes), limits.Bytes))}

	return 0, ""
}

// forgetLocked drops the keys that have all of their limits again, for which it makes no
// difference; all keys, if there are none of these.
func (l *Limiter) forgetLocked(now time.Time) {
	maps.DeleteFunc(l.used, func(_ wire.Secret, u usage) bool {
		return !u.calls.After(now) && !u.bytes.After(now)
	})
	if len(l.used) >= limitedKeysMax {
		clear(l.used)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// seconds returns the time in which a rate gives n; 0 if there is no rate.
func seconds(n, rate float64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(n / rate * float64(time.Second))
}
