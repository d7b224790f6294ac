package auth

import (
	"sync"
	"time"

	"promptspool/api/wire"
)

const (
	throttleWindow  = 15 * time.Minute
	failuresByEmail = 10
	failuresByIP    = 50
	throttledMax    = 10_000 // emails and addresses remembered; beyond it the windows that ended go, then any
)

// throttle counts failed sign-ins by what they have in common. It forgets at a restart. Safe for concurrent use.
type throttle struct {
	mu       sync.Mutex
	failures map[string]failures // under mu
}

type failures struct {
	count int
	until time.Time // the window ends
}

func newThrottle() *throttle { return &throttle{failures: map[string]failures{}} }

// check is an error while one of the sources has failed too often.
func (t *throttle) check(now time.Time, email, ip string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for source, bound := range map[string]int{"email " + email: failuresByEmail, "ip " + ip: failuresByIP} {
		if f := t.failures[source]; f.count >= bound && now.Before(f.until) {
			wait := f.until.Sub(now)
			return &wire.Error{Code: wire.CodeTooMany, RetryAfter: wait,
				Message: "Too many sign-ins failed. Wait a quarter of an hour, or ask an owner for a new password."}
		}
	}
	return nil
}

// failed counts a failure of both sources.
func (t *throttle) failed(now time.Time, email, ip string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.makeRoom(now)
	for _, source := range []string{"email " + email, "ip " + ip} {
		f := t.failures[source]
		if !now.Before(f.until) {
			f = failures{until: now.Add(throttleWindow)}
		}
		f.count++
		t.failures[source] = f
	}
}

// succeeded forgets the failures of an email.
func (t *throttle) succeeded(email string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failures, "email "+email)
}

func (t *throttle) makeRoom(now time.Time) {
	if len(t.failures) < throttledMax {
		return
	}
	for source, f := range t.failures {
		if !now.Before(f.until) {
			delete(t.failures, source)
		}
	}
	for source := range t.failures {
		if len(t.failures) < throttledMax {
			return
		}
		delete(t.failures, source)
	}
}
