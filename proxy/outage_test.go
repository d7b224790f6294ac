//go:build !race

package proxy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

func TestAnHourOfErrorsCostsWhatTheBackoffPromisesAndLosesNothing(t *testing.T) {
	for name, trouble := range map[string]reply{"500": fail(wire.CodeInternal, 0), "nothing": network} {
		scene(t, name, func(t *testing.T, s *sidecar, srv *server) {
			var names []string
			for i := range 6 {
				key := wire.Secret(fmt.Sprintf("key %d", i))
				srv.keys[key] = annIs
				names = append(names, fmt.Sprintf("e%d", i))
				s.mustWrite(key, names[i])
			}

			srv.always = trouble
			s.forward()
			pass(time.Hour)

			// There is a random delay of at most 5 s between two calls: one each 2.5 s in the mean. That
			// many calls stray by less than a tenth.
			want := int(time.Hour / (2500 * time.Millisecond))
			if n := len(srv.batches()); n < want*9/10 || n > want*11/10 {
				t.Errorf("there were %d calls in an hour; want about %d", n, want)
			}

			isUp := s.metric("promptspool_upstream_up", "") == 1
			srv.set(func(s *server) { s.always = nil })
			pass(11 * time.Second)
			wantDelivered(t, srv, names...)
			if _, again := srv.got(); again {
				t.Error("some came twice")
			}

			// The log and the metric tell once that a server was away, and that it is back.
			answers := name != "nothing"
			if isUp != answers || s.metric("promptspool_upstream_up", "") != 1 {
				t.Errorf("the server answers: %v; before it was well the metric said %v", answers, isUp)
			}
			for _, line := range []string{"cannot be reached", "answers again"} {
				if n := strings.Count(s.log.String(), line); n > 1 || answers != (n == 0) {
					t.Errorf("the log says %d times that the server %s", n, line)
				}
			}
		})
	}
}

// TestOneKeysTroubleIsNobodyElses gives one of two keys trouble of each kind, and checks that the
// other's events pass without delay.
func TestOneKeysTroubleIsNobodyElses(t *testing.T) {
	for name, trouble := range map[string]reply{
		"429 with Retry-After":  fail(wire.CodeTooMany, time.Hour),
		"429":                   fail(wire.CodeTooMany, 0),
		"503 of its account":    failOf(wire.AffectsAccount, 0, time.Hour),
		"503 of the key":        failOf(wire.AffectsKey, 0, 0),
		"later":                 refuse(wire.ResultLater, "a"),
		"a status of no known":  fail(wire.CodeNotFound, 0),
		"500 for this key only": fail(wire.CodeInternal, 0),
		"a proxy's 413":         foreign(413),
		"silence":               hang,
	} {
		scene(t, name, func(t *testing.T, s *sidecar, srv *server) {
			srv.set(func(s *server) {
				s.always = func(ctx context.Context, s *server, c call) (wire.BatchAnswer, error) {
					if c.key == annsKey {
						return trouble(ctx, s, c)
					}
					return take(ctx, s, c)
				}
			})

			s.forward()
			var names []string
			worst := time.Duration(0)
			for i := range 200 {
				if i < 20 {
					s.mustWrite(annsKey, "a")
				}
				name := fmt.Sprintf("b%03d", i)
				s.mustWrite(bobsKey, name)
				names = append(names, name)
				begun := time.Now()
				for !func() bool { srv.mu.Lock(); defer srv.mu.Unlock(); return srv.of[name] > 0 }() {
					pass(time.Millisecond)
				}
				if i > 0 { // at first nothing tells one key's trouble from everybody's
					worst = max(worst, time.Since(begun))
				}
			}

			wantDelivered(t, srv, names...)
			// Until a call of another key is answered, the server may be down as a whole: three
			// probes of it in a row take up to 0.7 s.
			if worst > time.Second {
				t.Errorf("one event waited for %v", worst)
			}

			srv.set(func(s *server) { s.always = nil })
			pass(2 * time.Hour)
			wantDelivered(t, srv, append(names, "a")...)
			if n := s.spool.Status().Events; n != 0 {
				t.Errorf("%d events wait after the trouble", n)
			}
		})
	}
}

// TestOneAccountsOutageIsNobodyElses has the server answer some accounts with 503 for minutes.
// Events of another account arrive as fast as ever, if the answer says whose trouble it is.
func TestOneAccountsOutageIsNobodyElses(t *testing.T) {
	for _, tt := range []struct {
		scene    string
		accounts int // that are in trouble
		trouble  reply
		begun    time.Duration // ago, when it is measured
		alone    bool          // the other account is served in time
	}{
		{"one account", 1, failOf(wire.AffectsAccount, 0, 5*time.Second), 0, true},
		{"one key", 1, failOf(wire.AffectsKey, 0, time.Second), 0, true},
		{"one account, of which the server learns after 4 s", 1,
			failOf(wire.AffectsAccount, 4*time.Second, 5*time.Second), 0, true},
		{"ten accounts", 10, failOf(wire.AffectsAccount, 0, 5*time.Second), 0, true},
		{"ten accounts, each answered after 30 s", 10,
			failOf(wire.AffectsAccount, 30*time.Second, 5*time.Second), 2 * time.Minute, true},
		{"all, as far as the server says", 1, failOf("", 0, 5*time.Second), 0, false},
	} {
		scene(t, tt.scene, func(t *testing.T, s *sidecar, srv *server) {
			srv.always = func(ctx context.Context, s *server, c call) (wire.BatchAnswer, error) {
				if c.key != bobsKey {
					return tt.trouble(ctx, s, c)
				}
				return take(ctx, s, c)
			}
			s.forward()

			names := writeBeside(s, srv, tt.accounts, tt.begun)
			begun := time.Now()
			names = append(names, writeBeside(s, srv, tt.accounts, time.Minute)...)
			srv.set(func(s *server) { s.always = nil })
			pass(2 * time.Minute)
			wantDelivered(t, srv, names...)

			delays := srv.delays(bobsKey, begun)
			slices.Sort(delays)
			if p95 := delays[len(delays)*95/100]; tt.alone != (p95 < time.Second) {
				t.Errorf("95 %% of the other account's events arrived within %v", p95)
			}
		})
	}
}

// writeBeside writes an event of bob's each 250 ms, and each 5 s one of every account in trouble.
// It returns their names.
func writeBeside(s *sidecar, srv *server, accounts int, long time.Duration) (names []string) {
	const pause = 250 * time.Millisecond
	write := func(key wire.Secret) {
		name := fmt.Sprintf("e%d-%d", time.Now().UnixMilli(), len(names))
		s.mustWrite(key, name)
		names = append(names, name)
	}

	for tick := range int(long / pause) {
		write(bobsKey)
		for n := 0; n < accounts && tick%20 == 0; n++ {
			key := wire.Secret(fmt.Sprint("key ", n))
			verdict := wire.KeyVerdict{Success: true, Account: fmt.Sprint(n), KeyID: "k"}
			srv.set(func(s *server) { s.keys[key] = verdict })
			write(key)
		}
		<-time.After(pause)
	}

	return names
}

// delays returns how long the events of a key that were accepted since a time were on their way.
func (s *server) delays(key wire.Secret, since time.Time) (delays []time.Duration) {
	for _, c := range s.batches() {
		for _, e := range c.events {
			if c.key == key && !e.AcceptedAt.Before(since) {
				delays = append(delays, c.at.Sub(e.AcceptedAt))
			}
		}
	}
	return delays
}
