package admission

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
)

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
