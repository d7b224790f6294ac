package proxy_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

func (s *server) goAway() { s.set(func(s *server) { s.verdict, s.always = noVerdict, network }) }
func (s *server) back()   { s.set(func(s *server) { s.verdict, s.always = nil, nil }) }

// keyFiles are the names in the folder of the keys.
func (s *sidecar) keyFiles() []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.keyDir())
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func wantKeyFiles(t *testing.T, s *sidecar, n int) {
	t.Helper()
	if names := s.keyFiles(); len(names) != n {
		t.Errorf("there are %d files of keys: %v; want %d", len(names), names, n)
	}
}

func wantUnavailable(t *testing.T, err error, message string) {
	t.Helper()
	e := wire.AsError(err)
	if err == nil || e.Status() != 503 || e.RetryAfter <= 0 || !strings.Contains(e.Message, message) {
		t.Errorf("got %v; want 503 with Retry-After and %q", err, message)
	}
}

func TestKeysNeverSeenAreTakenOnTrustWithinBounds(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.goAway()
		for i := range 64 {
			s.mustWrite(wire.Secret(fmt.Sprintf("key %d", i)), fmt.Sprintf("e%d", i))
		}
		wantUnavailable(t, s.write("key 64", "one more"), "64 keys")
		s.mustWrite("key 7", "again")
		wantKeyFiles(t, s, 64)

		srv.back()
		srv.set(func(s *server) { s.keys["key 7"] = annIs })
		s.drain()
		if got, _ := srv.got(); !slices.Equal(got, []string{"again", "e7"}) {
			t.Errorf("the server has %v; want what came with the key that it knows", got)
		}
		if held, _ := s.lane(queue.LaneHeld); len(held) != 63 {
			t.Errorf("%d events are held; want 63", len(held))
		}
		s.mustWrite(annsKey, "e1")
		srv.set(func(s *server) { s.verdict = noVerdict })
		s.mustWrite("key 64", "one more")
	})
}

func TestEventsOfKeysNeverSeenFillATwentiethOfTheSpool(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.goAway()
		srv.set(func(s *server) { s.verdict = nil })
		wantVerified(t, s, bobsKey, "bob", 0)
		srv.set(func(s *server) { s.verdict = noVerdict })

		var err error
		for i := 0; err == nil; i++ {
			err = s.write(wire.Secret(fmt.Sprintf("key %d", i%10)), strings.Repeat("x", 1000))
		}
		wantUnavailable(t, err, "50000 bytes")
		if bytes := s.spool.Status().Bytes; bytes < 48_000 || bytes > 50_000 {
			t.Errorf("%d bytes were taken on trust; want 50000 at most and hardly less", bytes)
		}
		s.mustWrite(bobsKey, strings.Repeat("y", 60_000))
		s.restart()
		wantUnavailable(t, s.write("key 1", strings.Repeat("x", 1000)), "50000 bytes")
	})
}

func TestAKeyOutlivesItsEventsByMomentsAndNoMore(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.goAway()
		s.mustWrite(annsKey, "e1")
		srv.set(func(s *server) { s.always = nil }) // it takes events, and gives no verdict
		s.drain()
		wantKeyFiles(t, s, 1)
		<-time.After(4 * time.Second)
		wantKeyFiles(t, s, 1) // a kill within the last second could bring the event back
		pass(time.Second)
		wantKeyFiles(t, s, 0)

		s.mustWrite(annsKey, "e2")
		wantKeyFiles(t, s, 1)
		s.drain()
		<-time.After(4 * time.Second)
		s.mustWrite(annsKey, "e3")
		<-time.After(time.Hour)
		wantKeyFiles(t, s, 1) // there is a new event that needs it
		s.drain()
		s.restart()
		wantKeyFiles(t, s, 0)
	})
}

func TestARefusedKeyIsKeptForItsHeldEvents(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.goAway()
		s.mustWrite("unknown", "e1")
		srv.back()
		s.drain()
		<-time.After(time.Minute)
		s.restart()
		wantKeyFiles(t, s, 1)
		wantRefused(t, s, "unknown")
	})
}

func TestARefusedKeyWithoutEventsIsErasedAndStaysRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		wantVerified(t, s, annsKey, "ann", 0)
		srv.set(func(s *server) { delete(s.keys, annsKey) })
		<-time.After(31 * time.Second)
		_, _, _ = s.authenticate(annsKey)
		synctest.Wait()
		<-time.After(6 * time.Second)
		wantKeyFiles(t, s, 0)
		wantAsked(t, srv, 2)
		wantRefused(t, s, annsKey)
		wantAsked(t, srv, 2)
	})
}

func TestAWriteWhoseKeyCannotBeKeptIsNotTaken(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.goAway()
		if err := os.Remove(s.keyDir()); err != nil {
			t.Fatal(err)
		}
		wantUnavailable(t, s.write(annsKey, "e1"), "disk")
		srv.set(func(s *server) { s.verdict = nil })
		<-time.After(2 * time.Second)
		wantUnverified(t, s, annsKey, 0)
		synctest.Wait()
		wantVerified(t, s, annsKey, "ann", 0) // the verdict counts, with or without a disk
		wantUnavailable(t, s.write(annsKey, "e2"), "disk")
		if n := s.spool.Status().Events; n != 0 {
			t.Errorf("%d events are in the spool; want none", n)
		}

		if err := os.Mkdir(s.keyDir(), 0o700); err != nil {
			t.Fatal(err)
		}
		<-time.After(31 * time.Second)
		wantVerified(t, s, annsKey, "ann", 0)
		synctest.Wait()
		wantKeyFiles(t, s, 1)
		s.mustWrite(annsKey, "e3")
		srv.set(func(s *server) { s.verdict = noVerdict })
		s.restart()
		wantVerified(t, s, annsKey, "ann", 0)
		srv.back()
		s.drain()
		if got, _ := srv.got(); !slices.Equal(got, []string{"e3"}) {
			t.Errorf("the server has %v; want e3", got)
		}
	})
}

func TestAKeyWhoseOnlyWriteFailedIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.trustOf = 1 << 30
		s.restart()
		_, _ = s.fill(bobsKey)
		srv.set(func(s *server) { s.verdict = silence })
		_, err := s.Record(t.Context(), wire.Identity{Key: annsKey}, padded(scores("e1")))
		wantUnavailable(t, err, "--spool-bytes-max")
		wantKeyFiles(t, s, 2)
		wantUnverified(t, s, annsKey, 0)
		pass(6 * time.Second)
		wantKeyFiles(t, s, 1)
		wantUnverified(t, s, annsKey, 250*time.Millisecond) // a first use again

		if err := os.RemoveAll(s.keyDir()); err != nil {
			t.Fatal(err)
		}
		wantUnavailable(t, s.write(annsKey, "e1"), "disk")
		wantUnverified(t, s, annsKey, 0)
		<-time.After(6 * time.Second)
		wantUnverified(t, s, annsKey, 250*time.Millisecond)
	})
}
