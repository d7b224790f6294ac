package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/proxy"
	"promptspool/spool/queue"
)

// ends gives ann's key this scope and prefix, and lets it end after d.
func (s *server) ends(d time.Duration, scope wire.Scope, prefix string) (end time.Time) {
	end = time.Now().Add(d).UTC()
	s.set(func(s *server) {
		s.keys[annsKey] = wire.KeyVerdict{
			Success: true, Account: "ann", KeyID: "k1", Scope: scope, Prefix: prefix, ExpiresAt: end,
		}
	})
	return end
}

func TestAKeyEndsAtASidecarThatIsCutOff(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"the clocks agree": 0, "its clock is ahead": time.Hour, "its clock is behind": -time.Hour,
	} {
		scene(t, name, func(t *testing.T, s *sidecar, srv *server) {
			s.ahead = ahead
			const life = 3 * time.Hour // at the server, which is there in the first moment only
			end := srv.ends(life-ahead, wire.ScopeLog|wire.ScopeFetch, "a/")
			id, _, err := s.authenticate(annsKey)
			want := wire.Identity{
				Account: "ann", KeyID: "k1", Scope: wire.ScopeLog | wire.ScopeFetch, Prefix: "a/", Expires: end,
				Key: annsKey, Verified: true,
			}
			if err != nil || id != want {
				t.Fatalf("the identity is %+v, %v; want %+v", id, err, want)
			}

			srv.set(func(s *server) { s.verdict = silence })
			s.restart()
			for _, expired := range []bool{false, true} {
				<-time.After(life - 1)
				want.Expired = expired
				if id, _, err := s.authenticate(annsKey); err != nil || id != want {
					t.Errorf("later the identity is %+v, %v; want %+v", id, err, want)
				}
				<-time.After(1)
			}
		})
	}
}

func TestWhatAKeyMayNotDeliverIsADeadLetterAndHoldsUpNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		const reason = "the key may not score"
		srv.always = refuseWhere(wire.Result{Code: wire.ResultForbidden, Reason: reason}, hasPrefix("no"))
		want := []string{"b1"}
		var forbidden []string
		for i := range 400 {
			forbidden = append(forbidden, fmt.Sprintf("no%03d", i))
		}
		s.mustWrite(annsKey, forbidden[:200]...)
		for i, name := range forbidden[200:] {
			want = append(want, fmt.Sprintf("yes%03d", i))
			s.mustWrite(annsKey, name, want[i+1])
		}
		s.mustWrite(bobsKey, "b1")

		if took := s.drain(); took > time.Second {
			t.Errorf("it took %v", took)
		}
		wantDelivered(t, srv, want...)
		dead, reasons := s.lane(queue.LaneDead)
		if !slices.Equal(sorted(dead), forbidden) || reasons[0] != reason {
			t.Errorf("%d are dead, for %q; want the %d that are forbidden", len(dead), reasons[0], len(forbidden))
		}
		paused := s.metric("promptspool_forward_paused", "") != 0
		if paused || strings.Contains(s.log.String(), "--upstream") {
			t.Error("the server is under suspicion")
		}

		// Another key delivers them.
		srv.set(func(s *server) { s.always = nil })
		if _, err := s.Replay(t.Context(), queue.LaneDead, every, bobsKey); err != nil {
			t.Fatal(err)
		}
		s.drain()
		wantDelivered(t, srv, slices.Concat(want, forbidden)...)
	})
}

func TestWhatWasAcceptedIsDeliveredAfterTheEndAndHeldWhenTheServerRefusesTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.ends(time.Hour, wire.ScopeApp, "")
		s.mustWrite(annsKey, "a1")
		<-time.After(2 * time.Hour)
		s.mustWrite(bobsKey, "b1") // its key is good as ever
		s.drain()
		wantDelivered(t, srv, "a1", "b1")

		// Thirty days later, the server does not know the key any more.
		srv.ends(time.Hour, wire.ScopeApp, "")
		<-time.After(time.Minute)
		s.mustWrite(annsKey, "a2")
		srv.set(func(s *server) { delete(s.keys, annsKey) })
		s.mustWrite(bobsKey, "b2")
		s.drain()
		wantDelivered(t, srv, "a1", "b1", "b2")
		if held, _ := s.lane(queue.LaneHeld); !slices.Equal(held, []string{"a2"}) {
			t.Errorf("held are %v; want a2", held)
		}
	})
}

func TestIdentitiesAreOfKeysThatMayAsk(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		identities := func(rights wire.Scope) (keys []string) {
			for _, id := range s.keys.Identities(rights) {
				keys = append(keys, id.KeyID)
			}
			slices.Sort(keys)
			return keys
		}
		know := func(id string, scope wire.Scope, prefix string, life time.Duration) {
			t.Helper()
			srv.set(func(s *server) {
				s.keys[wire.Secret(id)] = wire.KeyVerdict{
					Success: true, Account: "ann", KeyID: id, Scope: scope, Prefix: prefix,
					ExpiresAt: time.Now().Add(life).UTC(),
				}
			})
			if _, _, err := s.authenticate(wire.Secret(id)); err != nil {
				t.Fatal(err)
			}
		}
		want := func(fetch, all string) {
			t.Helper()
			got := fmt.Sprint(identities(wire.ScopeFetch|wire.ScopeRead), identities(wire.ScopeFull))
			if got != fmt.Sprintf("[%s] [%s]", fetch, all) {
				t.Errorf("those that fetch, and all: %s; want %s and %s", got, fetch, all)
			}
		}

		know("logs", wire.ScopeLog, "", 3*time.Hour)
		want("", "logs")
		know("some", wire.ScopeFetch, "a/", 3*time.Hour)
		want("some", "logs")
		know("reads", wire.ScopeFull&^wire.ScopeFetch, "", time.Hour)
		for range 10 { // whatever the order of the map is
			if got := identities(wire.ScopeFetch | wire.ScopeRead); !slices.Equal(got, []string{"reads"}) {
				t.Errorf("%v asks; want the key without a prefix", got)
			}
		}
		<-time.After(time.Hour)
		want("some", "logs")
		<-time.After(2 * time.Hour)
		want("", "")
	})
}

func TestASidecarWithItsOwnKeyNamesItWhenItEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		end := srv.ends(time.Hour, wire.ScopeApp, "")
		own := proxy.NewOwnKey(s.keys, annsKey, "")
		if id, err := own.Authenticate(t.Context(), "anything"); err != nil || !id.Verified {
			t.Fatalf("%+v, %v", id, err)
		}
		<-time.After(time.Hour)
		id, err := own.Authenticate(t.Context(), "anything")
		if !wire.IsCode(err, wire.CodeUnauthorized) || id.Verified ||
			!strings.Contains(err.Error(), "own key expired on "+end.Format(time.RFC3339)) {
			t.Errorf("%+v, %v", id, err)
		}
	})
}
