package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
)

// verdictAfter is a server that takes its time.
func verdictAfter(
	d time.Duration, v wire.KeyVerdict, err error,
) func(context.Context, wire.Secret) (wire.KeyVerdict, error) {
	return func(ctx context.Context, _ wire.Secret) (wire.KeyVerdict, error) {
		select {
		case <-time.After(d):
			return v, err
		case <-ctx.Done():
			return wire.KeyVerdict{}, away(0, ctx.Err())
		}
	}
}

var (
	noVerdict = verdictAfter(0, wire.KeyVerdict{}, away(0, errors.New("connection refused")))
	silence   = verdictAfter(24*time.Hour, wire.KeyVerdict{}, nil)
	annIs     = wire.KeyVerdict{Success: true, Account: "ann", KeyID: "k1", Scope: wire.ScopeFull}
)

func wantVerified(t *testing.T, s *sidecar, key wire.Secret, account string, within time.Duration) {
	t.Helper()
	id, took, err := s.authenticate(key)
	if err != nil || !id.Verified || id.Account != account || id.Key != key || took > within {
		t.Errorf("after %v: %+v, %v; want %s, verified, within %v", took, id, err, account, within)
	}
}

func wantUnverified(t *testing.T, s *sidecar, key wire.Secret, after time.Duration) {
	t.Helper()
	id, took, err := s.authenticate(key)
	if want := (wire.Identity{Key: key}); err != nil || id != want || took != after {
		t.Errorf("after %v: %+v, %v; want nothing but the key, after %v", took, id, err, after)
	}
}

func wantRefused(t *testing.T, s *sidecar, key wire.Secret) {
	t.Helper()
	if id, _, err := s.authenticate(key); !wire.IsCode(err, wire.CodeUnauthorized) || id != (wire.Identity{}) {
		t.Errorf("%+v, %v; want 401", id, err)
	}
}

func wantAsked(t *testing.T, srv *server, times int) {
	t.Helper()
	synctest.Wait()
	if n := srv.timesAsked(); n != times {
		t.Errorf("the server was asked %d times; want %d", n, times)
	}
}

func TestFirstUsesWaitForOneVerdictAndNoLaterOneDoes(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.verdict = verdictAfter(100*time.Millisecond, annIs, nil)
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() { wantVerified(t, s, annsKey, "ann", 100*time.Millisecond) })
		}
		callers.Wait()
		wantVerified(t, s, annsKey, "ann", 0)
		wantAsked(t, srv, 1)
		<-time.After(time.Hour)
		wantVerified(t, s, annsKey, "ann", 0)
		wantAsked(t, srv, 2)
	})
}

func TestAFirstUseDoesNotWaitLongForASilentServerNorLongerThanItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.verdict = silence
		wantUnverified(t, s, annsKey, 250*time.Millisecond)
		s.mustWrite(annsKey, "e1")
		wantUnverified(t, s, annsKey, 0)
		s.restart()
		wantUnverified(t, s, annsKey, 0)

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := s.keys.Authenticate(ctx, bobsKey); err != nil || time.Since(start) != time.Millisecond {
			t.Errorf("with its caller it ended after %v with %v", time.Since(start), err)
		}
	})
}

func TestQuestionsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.verdict = silence
		var callers sync.WaitGroup
		for i := range 64 {
			callers.Go(func() { wantUnverified(t, s, wire.Secret(fmt.Sprintf("key %d", i)), 250*time.Millisecond) })
		}
		synctest.Wait()
		wantUnverified(t, s, "one more", 0)
		callers.Wait()
	})
}

func TestARefusalIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		for range 29 {
			wantRefused(t, s, "a new key")
			<-time.After(time.Second)
		}
		wantAsked(t, srv, 1)
		srv.set(func(s *server) { s.keys["a new key"] = annIs })
		<-time.After(2 * time.Second)
		wantVerified(t, s, "a new key", "ann", 0)
		wantAsked(t, srv, 2)
	})
}

func TestARevocationIsSeenByTheSecondCallAfterHalfAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		wantVerified(t, s, annsKey, "ann", 0)
		srv.set(func(s *server) { delete(s.keys, annsKey) })
		<-time.After(29 * time.Second)
		wantVerified(t, s, annsKey, "ann", 0)
		<-time.After(time.Second)
		old, _, _ := s.authenticate(annsKey) // asks, and does not wait
		synctest.Wait()
		wantRefused(t, s, annsKey)
		if _, err := s.Record(t.Context(), old, scores("e1")); !wire.IsCode(err, wire.CodeUnauthorized) {
			t.Errorf("a call that was authenticated before got %v; want 401", err)
		}
	})
}

func TestAnAccountsKeysAreAskedAboutWhenOneIsInDoubt(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		wantVerified(t, s, annsKey, "ann", 0)
		wantVerified(t, s, bobsKey, "bob", 0)
		inBackground(t, s.keys.Run)
		synctest.Wait() // its first round would ask, too, when it met the doubt
		srv.set(func(s *server) { delete(s.keys, annsKey) })

		s.keys.Doubt("ann")
		synctest.Wait()
		wantRefused(t, s, annsKey)
		wantVerified(t, s, bobsKey, "bob", 0)
		wantAsked(t, srv, 3)
	})
}

func TestARevocationIsSeenWithinAMinuteAmongAThousandKeys(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		var keys []wire.Secret
		for i := range 1000 {
			key := wire.Secret(fmt.Sprint("key-", i))
			keys = append(keys, key)
			srv.set(func(s *server) {
				s.keys[key] = wire.KeyVerdict{Success: true, Account: "ann", KeyID: string(key), Scope: wire.ScopeApp}
			})
			wantVerified(t, s, key, "ann", 0)
		}

		inBackground(t, s.keys.Run)
		<-time.After(31 * time.Second) // in the midst of the verdicts' age

		srv.set(func(s *server) {
			verdicts := s.keys
			s.verdict = func(ctx context.Context, key wire.Secret) (wire.KeyVerdict, error) {
				<-time.After(100 * time.Millisecond) // a distant server: one after the other, it would be 100 s
				if key == keys[0] || key == keys[999] {
					return wire.KeyVerdict{}, wire.Errorf(wire.CodeUnauthorized, "revoked")
				}
				return verdicts[key], nil
			}
		})

		<-time.After(time.Minute)
		wantRefused(t, s, keys[0])
		wantRefused(t, s, keys[999])
		wantVerified(t, s, keys[500], "ann", 0)
	})
}

func TestARevocationIsSeenWhileTheServerFailsForAnotherAccount(t *testing.T) {
	for name, trouble := range map[string]error{
		"429":                wire.Errorf(wire.CodeTooMany, "Too many calls."),
		"503 of its account": &wire.Error{Code: wire.CodeUnavailable, Affects: wire.AffectsAccount},
	} {
		scene(t, name, func(t *testing.T, s *sidecar, srv *server) {
			for i := range 20 {
				key := wire.Secret(fmt.Sprint("key-", i))
				srv.set(func(s *server) { s.keys[key] = annIs })
				wantVerified(t, s, key, "ann", 0)
			}
			wantVerified(t, s, bobsKey, "bob", 0)
			srv.set(func(s *server) {
				s.verdict = func(_ context.Context, key wire.Secret) (wire.KeyVerdict, error) {
					if key == bobsKey {
						return wire.KeyVerdict{}, unauthorized
					}
					return wire.KeyVerdict{}, trouble
				}
			})

			inBackground(t, s.keys.Run)
			<-time.After(time.Minute)
			wantRefused(t, s, bobsKey)
			wantVerified(t, s, "key-0", "ann", 0)
		})
	}
}

func TestAGoodVerdictHoldsWhileTheServerIsAwayAlsoAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		wantVerified(t, s, annsKey, "ann", 0)
		srv.set(func(s *server) { s.verdict = silence })
		for range 10 {
			<-time.After(time.Minute)
			wantVerified(t, s, annsKey, "ann", 0)
			s.restart()
		}
	})
}

func TestVerdictsHoldWhileTheServerIsAwayAndItIsAskedOnceASecondForEach(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		wantVerified(t, s, annsKey, "ann", 0)
		wantRefused(t, s, "unknown")
		srv.set(func(s *server) { s.verdict = noVerdict })
		<-time.After(time.Minute)
		for range 1000 { // calls in ten seconds
			wantVerified(t, s, annsKey, "ann", 0)
			wantRefused(t, s, "unknown")
			pass(10 * time.Millisecond)
		}
		wantAsked(t, srv, 2+2*10)
	})
}

func TestAVerdictWithoutAnAccountIsNone(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.verdict = verdictAfter(0, wire.KeyVerdict{Success: true}, nil)
		wantUnverified(t, s, annsKey, 0)
	})
}

func TestWhatCannotBeAKeyIsRefusedUnasked(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		wantRefused(t, s, "")
		wantRefused(t, s, wire.Secret(strings.Repeat("k", 4<<10+1)))
		wantAsked(t, srv, 0)
	})
}

func TestIdentitiesAreOnePerAccount(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.keys["ann's other key, not less secret"] = annIs
		if ids := s.keys.Identities(wire.ScopeFull); len(ids) != 0 {
			t.Fatalf("at first there is %v", ids)
		}

		for key, account := range map[wire.Secret]string{
			annsKey: "ann", bobsKey: "bob", "ann's other key, not less secret": "ann",
		} {
			wantVerified(t, s, key, account, 0)
		}

		srv.set(func(s *server) { s.verdict = noVerdict })
		s.mustWrite("unseen", "e1")
		accounts := map[string]int{}
		for _, id := range s.keys.Identities(wire.ScopeFull) {
			accounts[id.Account]++
		}
		if len(accounts) != 2 || accounts["ann"] != 1 || accounts["bob"] != 1 {
			t.Errorf("identities per account: %v; want ann and bob, once each", accounts)
		}
	})
}

func TestCloseEndsQuestionsAndWaits(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.verdict = silence
		answered := make(chan error)
		go func() {
			_, _, err := s.authenticate(annsKey)
			answered <- err
		}()

		synctest.Wait()
		start := time.Now()
		s.keys.Close()
		if err := <-answered; err != nil || time.Since(start) != 0 {
			t.Errorf("the caller was released after %v with %v", time.Since(start), err)
		}

		wantUnverified(t, s, annsKey, 0)
		wantAsked(t, srv, 1)
	})
}
