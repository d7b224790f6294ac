package proxy_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"promptspool/spool/queue"
)

// inBackground runs something until the end of the scene.
func inBackground(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestHeldEventsGoOutByThemselvesWhenTheKeyIsTakenAgain(t *testing.T) {
	for name, restart := range map[string]bool{"at once": false, "after a restart": true} {
		scene(t, name, func(t *testing.T, s *sidecar, srv *server) {
			names := numbered(600) // given back in two pieces
			var bobs []string
			for i := range 6 {
				s.mustWrite(annsKey, names[100*i:100*i+100]...)
				bobs = append(bobs, fmt.Sprintf("b%d", i))
				s.mustWrite(bobsKey, bobs[i])
			}

			srv.set(func(s *server) { delete(s.keys, annsKey) })
			if took := s.drain(); took > time.Second {
				t.Errorf("it took %v", took)
			}
			wantRefused(t, s, annsKey)
			if restart {
				s.restart()
			}

			inBackground(t, s.Run)
			s.forward()
			pass(time.Hour)
			if held, _ := s.lane(queue.LaneHeld); len(held) != len(names) {
				t.Fatalf("%d events are held; want %d", len(held), len(names))
			}

			// Asked four times a minute, and no more.
			if n := srv.timesAsked(); n < 200 || n > 300 {
				t.Errorf("the server was asked %d times in an hour; want about 240", n)
			}
			wantDelivered(t, srv, bobs...)

			srv.set(func(s *server) { s.keys[annsKey] = annIs })
			pass(20 * time.Second)
			wantDelivered(t, srv, append(names, bobs...)...)
			wantLane(t, s, queue.LaneHeld)
			wantVerified(t, s, annsKey, "ann", 0)
		})
	}
}

func TestHeldEventsStayWhileTheServerIsAwayOrTheirKeyIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.mustWrite(annsKey, "e1")
		srv.set(func(s *server) { delete(s.keys, annsKey) })
		s.drain()
		srv.set(func(s *server) { s.keys[annsKey], s.verdict = annIs, noVerdict })
		inBackground(t, s.Run)
		pass(time.Hour)
		wantLane(t, s, queue.LaneHeld, "e1")
	})
}

func TestARevocationIsSeenWithinAMinuteAlsoByAKeyThatNobodyUses(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		wantVerified(t, s, annsKey, "ann", 0)
		wantVerified(t, s, bobsKey, "bob", 0)

		inBackground(t, s.keys.Run)
		pass(time.Hour)
		if n := srv.timesAsked(); n < 150 || n > 250 {
			t.Errorf("the server was asked %d times about two keys in an hour; want about 180", n)
		}

		srv.set(func(s *server) { delete(s.keys, annsKey) })
		pass(time.Minute)
		wantRefused(t, s, annsKey)
		wantVerified(t, s, bobsKey, "bob", 0)

		// While the server is away verdicts hold, and one question each ten seconds goes out, however
		// many keys there are.
		srv.set(func(s *server) { s.verdict = noVerdict })
		before := srv.timesAsked()
		pass(24 * time.Hour)
		if n := srv.timesAsked() - before; n > 24*360+10 {
			t.Errorf("the server was asked %d times in a day of its absence", n)
		}
		wantVerified(t, s, bobsKey, "bob", 0)
	})
}
