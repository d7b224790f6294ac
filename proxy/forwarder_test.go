package proxy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// wantDelivered checks that the server has exactly these events.
func wantDelivered(t *testing.T, srv *server, names ...string) {
	t.Helper()
	got, _ := srv.got()
	slices.Sort(names)
	if !slices.Equal(names, got) {
		t.Errorf("at the server (-want +got):\n%s", cmp.Diff(names, got))
	}
}

func wantLane(t *testing.T, s *sidecar, lane queue.Lane, names ...string) (reasons []string) {
	t.Helper()
	got, reasons := s.lane(lane)
	if diff := cmp.Diff(names, got); diff != "" {
		t.Fatalf("in the %s lane (-want +got):\n%s", lane, diff)
	}
	return reasons
}

// TestWhatAnAnswerMeans gives three events, one after another answered as told, and looks what became of them.
func TestWhatAnAnswerMeans(t *testing.T) {
	long := 90 * time.Second
	for _, tt := range []struct {
		scene  string
		script []reply

		calls      int           // batches that were sent
		atLeast    time.Duration // from start to empty spool
		atMost     time.Duration
		dead, held []string
		retried    string // by which reason
	}{
		{scene: "all taken", calls: 1},
		{scene: "all there already", script: []reply{answer(wire.BatchAnswer{Success: true, Duplicate: 3})},
			calls: 1},
		{scene: "no connection", script: []reply{network, network, network},
			calls: 4, atMost: time.Second, retried: "network"},
		{scene: "the answer got lost", script: []reply{lost},
			calls: 2, atMost: time.Second, retried: "network"},
		{scene: "no answer", script: []reply{hang},
			calls: 2, atLeast: long, atMost: 3 * time.Minute, retried: "network"},
		{scene: "a login page", script: []reply{foreign(200)},
			calls: 2, atLeast: time.Second, atMost: 2 * time.Second, retried: "foreign"},
		{scene: "a proxy's 401", script: []reply{foreign(401)},
			calls: 2, atLeast: time.Second, atMost: 2 * time.Second, retried: "foreign"},
		{scene: "a proxy's 403", script: []reply{foreign(403)},
			calls: 2, atLeast: time.Second, atMost: 2 * time.Second, retried: "foreign"},
		{scene: "a proxy's 422", script: []reply{foreign(422)},
			calls: 2, atLeast: time.Second, atMost: 2 * time.Second, retried: "foreign"},
		{scene: "a proxy's 502", script: []reply{foreign(502)},
			calls: 2, atLeast: time.Second, atMost: 2 * time.Second, retried: "foreign"},
		{scene: "a redirect", script: []reply{foreign(302)},
			calls: 2, atLeast: time.Second, atMost: 2 * time.Second, retried: "foreign"},
		{scene: "429 with Retry-After", script: []reply{fail(wire.CodeTooMany, 7*time.Second)},
			calls: 2, atLeast: 7 * time.Second, atMost: 8 * time.Second, retried: "status"},
		{scene: "503 with Retry-After", script: []reply{fail(wire.CodeUnavailable, time.Minute)},
			calls: 2, atLeast: time.Minute, atMost: 62 * time.Second, retried: "status"},
		{scene: "503 of its account", script: []reply{failOf(wire.AffectsAccount, 0, time.Minute)},
			calls: 2, atLeast: time.Minute, atMost: 62 * time.Second, retried: "status"},
		{scene: "500", script: []reply{fail(wire.CodeInternal, 0)},
			calls: 2, atMost: time.Second, retried: "status"},
		{scene: "too few are accounted for", script: []reply{answer(wire.BatchAnswer{Success: true, Accepted: 2})},
			calls: 2, atMost: time.Second, retried: "answer"},
		{scene: "too many are accounted for", script: []reply{answer(wire.BatchAnswer{Success: true, Accepted: 4})},
			calls: 2, atMost: time.Second, retried: "answer"},
		{scene: "a negative count",
			script: []reply{answer(wire.BatchAnswer{Success: true, Accepted: 4, Duplicate: -1})},
			calls:  2, atMost: time.Second, retried: "answer"},
		{scene: "an event is refused that was not sent", script: []reply{answer(wire.BatchAnswer{
			Success: true, Accepted: 2, Refused: []wire.Result{{ID: "x", Code: wire.ResultInvalid}},
		})},
			calls: 2, atMost: time.Second, retried: "answer"},
		{scene: "one event is refused twice", script: []reply{refuseFirstTwice},
			calls: 2, atMost: time.Second, retried: "answer"},
		{scene: "one is invalid", script: []reply{refuse(wire.ResultInvalid, "e2")},
			calls: 1, dead: []string{"e2"}},
		{scene: "all are invalid", script: []reply{refuse(wire.ResultInvalid, "e1", "e2", "e3")},
			calls: 1, dead: []string{"e1", "e2", "e3"}},
		{scene: "one comes later", script: []reply{refuse(wire.ResultLater, "e2")},
			calls: 2, atLeast: 100 * time.Millisecond, atMost: time.Second, retried: "later"},
		{scene: "a code of a newer version", script: []reply{refuse("tomorrow", "e2")},
			calls: 2, atLeast: 100 * time.Millisecond, atMost: time.Second, retried: "later"},
		{scene: "401", script: []reply{fail(wire.CodeUnauthorized, 0)},
			calls: 1, held: []string{"e1", "e2", "e3"}},
		{scene: "403", script: []reply{fail(wire.CodeForbidden, 0)},
			calls: 1, held: []string{"e1", "e2", "e3"}},
		{scene: "400 for one", script: slices.Repeat([]reply{fail(wire.CodeBadJSON, 0)}, 2),
			calls: 3, dead: []string{"e1"}},
		{scene: "413 for one", script: slices.Repeat([]reply{fail(wire.CodeTooLarge, 0)}, 2),
			calls: 3, dead: []string{"e1"}},
		{scene: "422 for one", script: slices.Repeat([]reply{fail(wire.CodeInvalid, 0)}, 2),
			calls: 3, dead: []string{"e1"}},
		{scene: "404", script: []reply{fail(wire.CodeNotFound, 0)},
			calls: 3, atLeast: 30 * time.Second, atMost: 31 * time.Second, retried: "status"},
		{scene: "501", script: []reply{fail(wire.CodeNotImplemented, 0)},
			calls: 3, atLeast: 30 * time.Second, atMost: 31 * time.Second, retried: "status"},
	} {
		t.Run(tt.scene, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				srv := newServer(t)
				s := newSidecar(t, srv)
				s.mustWrite(annsKey, "e1", "e2", "e3")
				srv.script = tt.script
				took := s.drain()
				if tt.atMost == 0 {
					tt.atMost = 10 * time.Millisecond
				}
				if n := len(srv.batches()); n != tt.calls || took < tt.atLeast || took > tt.atMost {
					t.Errorf("it took %d batches and %v; want %d, %v to %v", n, took, tt.calls, tt.atLeast, tt.atMost)
				}
				wantLane(t, s, queue.LaneDead, tt.dead...)
				wantLane(t, s, queue.LaneHeld, tt.held...)
				if tt.scene != "all there already" {
					wantDelivered(t, srv, slices.DeleteFunc(numbered(3), func(name string) bool {
						return slices.Contains(tt.dead, name) || slices.Contains(tt.held, name)
					})...)
				}
				if tt.retried != "" && s.metric("promptspool_forward_retries_total", tt.retried) == 0 {
					t.Errorf("no retry is counted for %q", tt.retried)
				}
				sent := 3 - len(tt.dead) - len(tt.held)
				if n := s.metric("promptspool_forward_sent_total", ""); n != float64(sent) {
					t.Errorf("%v events are counted as sent; want %d", n, sent)
				}
			})
		})
	}
}

// refuseFirstTwice names the first event twice and says nothing of another.
func refuseFirstTwice(_ context.Context, _ *server, c call) (wire.BatchAnswer, error) {
	r := wire.Result{ID: c.events[0].ID, Code: wire.ResultInvalid, Reason: "twice"}
	return wire.BatchAnswer{Success: true, Accepted: len(c.events) - 2, Refused: []wire.Result{r, r}}, nil
}

func TestAWindowGoesOutAsOneBatchPerKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		for i := range 10 {
			s.mustWrite(annsKey, fmt.Sprintf("a%d", i))
			s.mustWrite(bobsKey, fmt.Sprintf("b%d", i))
		}

		s.drain()
		calls := srv.batches()
		if len(calls) != 2 {
			t.Fatalf("there were %d batches; want one per key", len(calls))
		}

		for _, c := range calls {
			letter := map[wire.Secret]string{annsKey: "a", bobsKey: "b"}[c.key]
			for i, name := range c.names() {
				if want := fmt.Sprintf("%s%d", letter, i); name != want {
					t.Errorf("in place %d of %s's batch is %s; want %s", i, letter, name, want)
				}
			}
		}
	})
}

func TestABatchHasABound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		s.mustWrite(annsKey, numbered(2500)...)
		s.drain()
		for _, c := range srv.batches() {
			if len(c.events) > wire.BatchEventsMax {
				t.Errorf("a batch had %d events", len(c.events))
			}
		}
		wantDelivered(t, srv, numbered(2500)...)
	})
}

func TestFourBatchesAreOnTheirWayAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		for i := range 6 {
			key := wire.Secret(fmt.Sprintf("key %d", i))
			srv.keys[key] = annIs
			s.mustWrite(key, fmt.Sprintf("e%d", i))
		}
		srv.always = hang
		stop := s.forward()
		defer stop()
		synctest.Wait()
		if n := len(srv.batches()); n != 4 {
			t.Errorf("%d batches are on their way; want 4", n)
		}
	})
}

func TestOnePoisonEventIsFoundAmongTenThousand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		s.bytesMax = 64 << 20
		s.restart()
		s.mustWrite(annsKey, numbered(10_000)...)

		srv.always = refuseBatchesWith("e7777")
		s.drain()
		reasons := wantLane(t, s, queue.LaneDead, "e7777")
		if reasons[0] != "no: invalid" {
			t.Errorf("it is buried for %q; want the server's words", reasons[0])
		}
		isPoison := func(name string) bool { return name == "e7777" }
		wantDelivered(t, srv, slices.DeleteFunc(numbered(10_000), isPoison)...)

		if n := len(srv.batches()); n > 30 {
			t.Errorf("it took %d batches; want ten, and two for each of ten halvings", n)
		}
		if _, again := srv.got(); again {
			t.Error("events that were taken were sent again")
		}
	})
}

func TestAServerThatRefusesEverythingMakesForwardingPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		s.mustWrite(annsKey, numbered(20)...)

		srv.set(func(s *server) { s.always = fail(wire.CodeInvalid, 0) })
		stop := s.forward()
		defer stop()
		<-time.After(5 * time.Minute)
		synctest.Wait()
		wantLane(t, s, queue.LaneDead, numbered(5)...)

		if n := len(srv.batches()); n > 40 {
			t.Errorf("there were %d calls in five minutes of pause; want some to find the events, and one each 30 s", n)
		}
		if s.metric("promptspool_forward_paused", "") != 1 ||
			!strings.Contains(s.log.String(), "Forwarding pauses") {
			t.Error("neither metric nor log tell of the pause")
		}

		srv.set(func(s *server) { s.always = nil })
		<-time.After(31 * time.Second)
		synctest.Wait()
		wantLane(t, s, queue.LaneDead, numbered(5)...)
		wantDelivered(t, srv, numbered(20)[5:]...)
	})
}

func TestAStatusOutsideTheContractPausesAndAlarms(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		s.mustWrite(annsKey, "e1")

		srv.script = []reply{fail(wire.CodeNotFound, 0)}
		stop := s.forward()
		defer stop()
		synctest.Wait()
		if s.metric("promptspool_forward_paused", "") != 1 || !strings.Contains(s.log.String(), "not_found") {
			t.Error("neither metric nor log tell of the pause")
		}

		<-time.After(31 * time.Second)
		synctest.Wait()
		wantDelivered(t, srv, "e1")
		if s.metric("promptspool_forward_paused", "") != 0 {
			t.Error("the pause is over and the metric does not say so")
		}
	})
}

func TestAProxysSizeLimitIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		s.mustWrite(annsKey, numbered(100)...)
		srv.always = func(ctx context.Context, s *server, c call) (wire.BatchAnswer, error) {
			if len(c.events) > 10 {
				return foreign(413)(ctx, s, c)
			}
			return take(ctx, s, c)
		}
		took := s.drain()
		wantDelivered(t, srv, numbered(100)...)
		if n := len(srv.batches()); n > 31 || took > time.Second { // 100 are halved to 16 parts at most
			t.Errorf("it took %d batches and %v; want 31 at most, and no waiting", n, took)
		}
		wantLane(t, s, queue.LaneDead)
	})
}

func TestOneEventThatAProxyFindsTooLargeIsNotLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		s.mustWrite(annsKey, "e1")
		srv.always = foreign(413)
		stop := s.forward()
		<-time.After(10 * time.Minute)
		if n := len(srv.batches()); n < 30 || n > 80 {
			t.Errorf("it was sent %d times in ten minutes; want about 50", n)
		}
		stop()
		srv.always = nil
		s.drain()
		wantDelivered(t, srv, "e1")
	})
}

func TestStoppingWaitsForNobody(t *testing.T) {
	for name, always := range map[string]reply{
		"the server is silent":    hang,
		"the server is away":      network,
		"the server says later":   refuse(wire.ResultLater, "e1"),
		"forwarding pauses":       fail(wire.CodeNotFound, 0),
		"the spool is empty":      nil,
		"the server asks to wait": fail(wire.CodeTooMany, time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				srv := newServer(t)
				s := newSidecar(t, srv)
				s.mustWrite(annsKey, "e1")

				srv.always = always
				stop := s.forward()
				<-time.After(10 * time.Second)
				start := time.Now()
				stop()
				if took := time.Since(start); took != 0 {
					t.Errorf("it took %v", took)
				}

				srv.always = nil
				s.drain()
				wantDelivered(t, srv, "e1")
			})
		})
	}
}

func TestRefusedEventsStayInTheSpoolWhileTheLanesAreFull(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		s := newSidecar(t, srv)
		s.bytesMax = 2 * spoolBytesMax
		s.restart()
		names, _ := s.fill(annsKey)
		srv.set(func(s *server) { delete(s.keys, annsKey) })
		stop := s.forward()
		<-time.After(time.Minute)
		synctest.Wait()
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

func TestABacklogIsDeliveredWhileTheAppWritesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := newServer(t)
		srv.always = network
		s := newSidecar(t, srv)
		stop := s.forward()
		defer stop()

		for i := range 60 { // some of them larger than what is read at once beside an app that writes
			events := scores(fmt.Sprintf("e%d", i+1))
			if i%2 == 0 {
				events = padded(events)
			}
			if _, err := s.Record(context.Background(), s.identity(annsKey), events); err != nil {
				t.Fatal(err)
			}
		}

		<-time.After(10 * time.Second)
		srv.set(func(s *server) { s.always = nil })

		var later []string
		for i := range 100 {
			later = append(later, fmt.Sprintf("later%d", i))
			s.mustWrite(annsKey, later[i])
			<-time.After(100 * time.Millisecond)
		}

		synctest.Wait()
		wantDelivered(t, srv, append(numbered(60), later...)...)
		if _, again := srv.got(); again {
			t.Error("events that were taken were sent again")
		}
	})
}
