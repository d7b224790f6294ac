package proxy_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/spool/queue"
)

// retryHeld runs what gives held events back, until the end of the scene.
func (s *sidecar) retryHeld(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestHeldEventsGoOutByThemselvesWhenTheKeyIsTakenAgain(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			srv := newServer(t)
			s := newSidecar(t, srv)
			s.mustWrite(annsKey, numbered(1500)...)

			srv.set(func(s *server) { delete(s.keys, annsKey) })
			s.drain()
			wantRefused(t, s, annsKey)
			if restart {
				s.restart()
			}

			s.retryHeld(t)
			stop := s.forward()
			defer stop()
			<-time.After(time.Hour)
			synctest.Wait()
			if held, _ := s.lane(queue.LaneHeld); len(held) != 1500 {
				t.Fatalf("%d events are held; want 1500", len(held))
			}

			// Asked four times a minute, and no more.
			if n := srv.timesAsked(); n < 200 || n > 300 {
				t.Errorf("the server was asked %d times in an hour; want about 240", n)
			}
			wantDelivered(t, srv)

			srv.set(func(s *server) { s.keys[annsKey] = annIs })
			<-time.After(20 * time.Second)
			synctest.Wait()
			wantDelivered(t, srv, numbered(1500)...)
			wantLane(t, s, queue.LaneHeld)
			wantVerified(t, s, annsKey, "ann", 0)
		})
	}
}

func TestHeldEventsStayWhileTheServerIsAwayOrTheirKeyIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		s.mustWrite(annsKey, "e1")
		srv.set(func(s *server) { delete(s.keys, annsKey) })
		s.drain()
		srv.set(func(s *server) { s.keys[annsKey], s.verdict = annIs, noVerdict })
		s.retryHeld(t)
		<-time.After(time.Hour)
		synctest.Wait()
		wantLane(t, s, queue.LaneHeld, "e1")
	})
}

func TestARevocationIsSeenWithinAMinuteAlsoByAKeyThatNobodyUses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		wantVerified(t, s, annsKey, "ann", 0)
		wantVerified(t, s, bobsKey, "bob", 0)

		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.keys.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		<-time.After(time.Hour)
		synctest.Wait()
		if n := srv.timesAsked(); n < 150 || n > 250 {
			t.Errorf("the server was asked %d times about two keys in an hour; want about 180", n)
		}

		srv.set(func(s *server) { delete(s.keys, annsKey) })
		<-time.After(time.Minute)
		synctest.Wait()
		wantRefused(t, s, annsKey)
		wantVerified(t, s, bobsKey, "bob", 0)

		// While the server is away verdicts hold, and one question each ten seconds goes out, however
		// many keys there are.
		srv.set(func(s *server) { s.verdict = noVerdict })
		before := srv.timesAsked()
		<-time.After(24 * time.Hour)
		synctest.Wait()
		if n := srv.timesAsked() - before; n > 24*360+10 {
			t.Errorf("the server was asked %d times in a day of its absence", n)
		}
		wantVerified(t, s, bobsKey, "bob", 0)
	})
}

func TestAKeyThatWaitsForLongLetsOthersPassAndThenTheDiskGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		s.mustWrite(annsKey, "late")
		srv.set(func(s *server) { s.always = refuse("later", "late") })

		stop := s.forward()
		defer stop()
		var names []string
		for i := range 40 { // 2.6 MB go by, of which an eighth of the spool's 8 MiB may stay
			event := padded(scores(numbered(40)[i]))
			name := nameIn(event[0])
			if _, err := s.Record(context.Background(), s.identity(bobsKey), event); err != nil {
				t.Fatalf("after %d: %v", i, err)
			}
			names = append(names, name)
			<-time.After(time.Second)
		}

		synctest.Wait()
		got, _ := srv.got()
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Fatalf("the others were held up: %d of %d arrived", len(got), len(names))
		}

		reasons := wantLane(t, s, queue.LaneHeld, "late")
		if reasons[0] != "not delivered for long: it is late" {
			t.Errorf("it is held for %q", reasons[0])
		}
		if n := s.spool.Status().Events; n != 0 {
			t.Errorf("%d events are still in the spool", n)
		}

		// It goes out by itself when the server knows what to do with it.
		srv.set(func(s *server) { s.always = nil })
		s.retryHeld(t)
		<-time.After(time.Minute)
		synctest.Wait()
		wantDelivered(t, srv, append(names, "late")...)
		wantLane(t, s, queue.LaneHeld)
	})
}
