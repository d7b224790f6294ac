package admission

import (
	"fmt"
	"testing"
	"time"

	"promptspool/api/wire"
)

func TestAKeyIsHeldToItsCalls(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var l Limiter
	allowed := func(key wire.Secret, bytes int, want bool) {
		t.Helper()
		if wait, limit := l.Take(key, bytes, now); (limit == "") != want || (wait == 0) != want {
			t.Fatalf("%d bytes: wait %v for %q; allowed should be %v", bytes, wait, limit, want)
		}
	}
	for range 100 {
		allowed("a", 1<<20, true) // no limits yet
	}

	l.Set(Limits{Calls: 2, Bytes: 1000})
	allowed("a", 0, true)
	allowed("a", 0, true)
	allowed("a", 0, false)
	allowed("b", 0, true) // another key's limit is its own

	now = now.Add(500 * time.Millisecond)
	allowed("a", 5000, true) // more than a second gives: it is paid for afterwards
	now = now.Add(time.Second)
	allowed("a", 1, false)
	now = now.Add(10 * time.Second)
	allowed("a", 1, true)

	l.Set(Limits{Calls: 1000})
	allowed("a", 1<<30, true) // the limit of bytes is gone
	l.Set(Limits{Calls: 1000, Bytes: 1000})
	allowed("a", 1, true) // what was sent without a limit does not count

	l.Set(Limits{})
	for range 100 {
		allowed("a", 1<<20, true)
	}
}

func TestALimiterDoesNotGrowWithTheKeys(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var l Limiter
	l.Set(Limits{Calls: 1})
	for i := range 3 * limitedKeysMax {
		l.Take(wire.Secret(fmt.Sprint(i)), 1, now)
		if len(l.used) > limitedKeysMax {
			t.Fatalf("%d keys are watched", len(l.used))
		}
	}
	now = now.Add(time.Minute)
	l.Take("one more", 1, now)
	l.forgetLocked(now)
	if _, watched := l.used["one more"]; !watched || len(l.used) != 1 {
		t.Errorf("%d keys are watched though all but one have their limits again", len(l.used))
	}
}
