package api

import (
	"sync"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
)

// Limits bound what one key may do; 0 means no bound. A key may use a second's worth at once.
type Limits struct {
	Calls float64 // a second
	Bytes float64 // of bodies, unpacked, a second
}

// limitedKeysMax bounds how many keys are watched at once.
const limitedKeysMax = 4096

// Limiter holds keys to limits. Safe for concurrent use; the zero value lets everything pass.
type Limiter struct {
	limits atomic.Pointer[Limits]
	mu     sync.Mutex
	keys   map[wire.Secret]*use // under mu
}

// use is what a key has left. Below zero it waits: one call may take more bytes than a second gives, and is paid for by those
// after it.
type use struct {
	calls, bytes float64
	at           time.Time
}

// Set puts limits in force, for all calls from now on.
func (l *Limiter) Set(limits Limits) { l.limits.Store(&limits) }

// none says whether nothing is limited.
func (l *Limiter) none() bool {
	limits := l.limits.Load()
	return limits == nil || *limits == (Limits{})
}

// take counts one call with a body of this many bytes. It returns how long the key has to wait, and for which limit, when the call
// is not allowed; then nothing is counted.
func (l *Limiter) take(key wire.Secret, bytes int, now time.Time) (wait time.Duration, limit string) {
	if l.none() {
		return 0, ""
	}
	limits := l.limits.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.use(key, *limits, now)
	switch {
	case limits.Calls > 0 && u.calls < 1:
		return seconds((1 - u.calls) / limits.Calls), "calls"
	case limits.Bytes > 0 && u.bytes <= 0:
		return seconds((1 - u.bytes) / limits.Bytes), "bytes"
	}
	u.calls--
	u.bytes -= float64(bytes)
	return 0, ""
}

// use finds a key's account and adds what the time since its last call gave. It is called under mu.
func (l *Limiter) use(key wire.Secret, limits Limits, now time.Time) *use {
	full := use{max(1, limits.Calls), limits.Bytes, now}
	u := l.keys[key]
	if u == nil {
		if l.keys == nil || len(l.keys) >= limitedKeysMax {
			l.forget(limits, now)
		}
		u = &full
		l.keys[key] = u
		return u
	}
	if since := now.Sub(u.at).Seconds(); since > 0 {
		u.calls, u.bytes = u.calls+since*limits.Calls, u.bytes+since*limits.Bytes
		u.at = now
	}
	u.calls, u.bytes = min(u.calls, full.calls), min(u.bytes, full.bytes)
	return u
}

// forget drops the keys that have all of their limits again, for it makes no difference to them; if that is not enough, all.
func (l *Limiter) forget(limits Limits, now time.Time) {
	for key, u := range l.keys {
		since := now.Sub(u.at).Seconds()
		if u.calls+since*limits.Calls >= max(1, limits.Calls) && u.bytes+since*limits.Bytes >= limits.Bytes {
			delete(l.keys, key)
		}
	}
	if l.keys == nil || len(l.keys) >= limitedKeysMax {
		l.keys = make(map[wire.Secret]*use)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// limit holds a call with a body of so many bytes to its key's limits.
func (a *API) limit(c *call, bytes int) error {
	if a.c.Limiter == nil || a.c.Limiter.none() {
		return nil
	}
	wait, limit := a.c.Limiter.take(c.id.Key, bytes, time.Now())
	if limit == "" {
		return nil
	}
	a.c.Metrics.Limited.WithLabelValues(limit).Inc()
	e := wire.Errorf(wire.CodeTooMany, "This key met its limit of %s in a second. Send this again after the time in Retry-After, or raise --key-%s-max.", limit, limit)
	e.RetryAfter = max(wait, time.Millisecond)
	return e
}
