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
	"promptspool/spool/queue"
)

func TestLanesFullOfLettersOfLimitsTakeHeldEventsAndHoldUpNoWrite(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.bytesMax = 2 * spoolBytesMax // 4 MiB of lanes, of which a key's letters of limits may use 256 KiB
		s.restart()
		srv.always = refuseWhere(atLimit, hasPrefix("full"))
		for i := range 40 {
			key := wire.Secret(fmt.Sprintf("key %d", i))
			srv.keys[key] = annIs
			if _, err := s.Record(t.Context(), s.identity(key), padded(scores("full", "full", "full"))); err != nil {
				t.Fatal(err)
			}
			s.drain()
		}
		if st := s.spool.Status(); st.Dead < 40 || st.Dead+st.Dropped != 120 || st.Dropped == 0 {
			t.Fatalf("the lanes are not full: %+v", st)
		}

		// Nearly as many held events as fit in all of the lanes.
		for _, name := range numbered(50) {
			if _, err := s.Record(t.Context(), s.identity(annsKey), padded(scores(name))); err != nil {
				t.Fatal(err)
			}
		}
		s.mustWrite(bobsKey, "b")
		srv.set(func(s *server) { delete(s.keys, annsKey) })
		s.drain()
		wantLane(t, s, queue.LaneHeld, numbered(50)...)
		wantDelivered(t, srv, "b")
		if s.metric("promptspool_lanes_full", "") != 0 || s.metric("promptspool_forward_paused", "") != 0 {
			t.Error("the metrics tell of full lanes, or of a pause")
		}
	})
}

func TestRefusedEventsStayInTheSpoolWhileTheLanesAreFull(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.bytesMax = 2 * spoolBytesMax
		s.restart()
		names, _ := s.fill(annsKey)
		srv.set(func(s *server) { delete(s.keys, annsKey) })
		stop := s.forward()
		pass(time.Minute)
		// The lanes take a quarter of the spool's bound.
		held, _ := s.lane(queue.LaneHeld)
		if n := s.spool.Status().Events; n == 0 || n+len(held) < len(names) {
			t.Errorf("%d events are held and %d in the spool; want %d at least, some of them in the spool",
				len(held), n, len(names))
		}
		paused := s.metric("promptspool_forward_paused", "") == 1
		if !paused || !strings.Contains(s.log.String(), "cannot be moved to a lane") {
			t.Error("neither metric nor log tell of the pause")
		}
		stop()

		srv.set(func(s *server) { s.keys[annsKey] = annIs }) // it was a mistake
		s.drain()
		got, _ := srv.got() // those that were held out of order may have come as well
		for _, name := range names {
			if !slices.Contains(got, name) && !slices.Contains(held, name) {
				t.Errorf("%s is neither delivered nor held", name)
			}
		}
	})
}

func TestAFullSpoolLeavesHeldEventsWhereTheyAre(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.holdThree()
		if _, err := s.fill(bobsKey); err == nil {
			t.Fatal("the spool does not fill")
		}
		// What is left of its last generation may take the small ones.
		for err := error(nil); err == nil; {
			err = s.write(bobsKey, "e")
		}

		moved, err := s.Replay(t.Context(), queue.LaneHeld, every, "")
		wantUnavailable(t, err, "--spool-bytes-max")
		if moved != 0 {
			t.Errorf("%d were moved", moved)
		}
		wantLane(t, s, queue.LaneHeld, "a1", "b2", "a3")

		s.drain()
		<-time.After(2 * time.Second)
		s.replay(3, every, "")
		s.drain()
		if got := srv.keysOf(); got["a1"] != annsKey || got["b2"] != bobsKey || got["a3"] != annsKey {
			t.Errorf("they came under %v", got)
		}
	})
}

func TestAKeyThatWaitsForLongLetsOthersPassAndThenTheDiskGo(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.mustWrite(annsKey, "late")
		srv.set(func(s *server) { s.always = refuse("later", "late") })

		s.forward()
		var names []string
		for i := range 40 { // 2.6 MB go by, of which an eighth of the spool's 8 MiB may stay
			event := padded(scores(numbered(40)[i]))
			name := nameIn(event[0])
			if _, err := s.Record(context.Background(), s.identity(bobsKey), event); err != nil {
				t.Fatalf("after %d: %v", i, err)
			}
			names = append(names, name)
			pass(time.Second)
		}

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

		// The log has the reason at once, and does not repeat it.
		if n := strings.Count(s.log.String(), "cannot take some events yet"); n != 1 {
			t.Errorf("the log says %d times that an event waits", n)
		}

		// It goes out by itself when the server knows what to do with it.
		srv.set(func(s *server) { s.always = nil })
		inBackground(t, s.Run)
		pass(time.Minute)
		wantDelivered(t, srv, append(names, "late")...)
		wantLane(t, s, queue.LaneHeld)
	})
}
