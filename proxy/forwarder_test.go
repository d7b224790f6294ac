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
	if !slices.Equal(names, got) {
		t.Fatalf("in the %s lane (-want +got):\n%s", lane, cmp.Diff(names, got))
	}
	return reasons
}

// TestWhatAnAnswerMeans gives three events, one after another answered as told, and looks what became of them.
func TestWhatAnAnswerMeans(t *testing.T) {
	const second = time.Second
	rows := []struct {
		scene           string
		first           reply         // what the first batch gets
		batches         int           // that were sent
		atLeast, atMost time.Duration // from start to empty spool
		retried         string        // by which reason
		dead, held      string
	}{
		{"all taken", take, 1, 0, 0, "", "", ""},
		{"all there already", answer(wire.BatchAnswer{Success: true, Duplicate: 3}), 1, 0, 0, "", "", ""},
		{"no connection", network, 2, 0, second, "network", "", ""},
		{"the answer got lost", lost, 2, 0, second, "network", "", ""},
		{"no answer", hang, 2, 90 * second, 180 * second, "network", "", ""},
		{"a login page", foreign(200), 2, second, 2 * second, "foreign", "", ""},
		{"a proxy's 401", foreign(401), 2, second, 2 * second, "foreign", "", ""},
		{"a proxy's 403", foreign(403), 2, second, 2 * second, "foreign", "", ""},
		{"a proxy's 422", foreign(422), 2, second, 2 * second, "foreign", "", ""},
		{"a proxy's 502", foreign(502), 2, second, 2 * second, "foreign", "", ""},
		{"a redirect", foreign(302), 2, second, 2 * second, "foreign", "", ""},
		{"429, Retry-After", fail(wire.CodeTooMany, 7*second), 2, 7 * second, 8 * second, "status", "", ""},
		{"503, Retry-After", fail(wire.CodeUnavailable, 60*second), 2, 60 * second, 62 * second, "status", "", ""},
		{"503 of its account", failOf(wire.AffectsAccount, 0, 60*second),
			2, 60 * second, 62 * second, "status", "", ""},
		{"500", fail(wire.CodeInternal, 0), 2, 0, second, "status", "", ""},
		{"too few are accounted for", answer(wire.BatchAnswer{Success: true, Accepted: 2}),
			2, 0, second, "answer", "", ""},
		{"too many are accounted for", answer(wire.BatchAnswer{Success: true, Accepted: 4}),
			2, 0, second, "answer", "", ""},
		{"a negative count", answer(wire.BatchAnswer{Success: true, Accepted: 4, Duplicate: -1}),
			2, 0, second, "answer", "", ""},
		{"an event is refused that was not sent", answer(wire.BatchAnswer{
			Success: true, Accepted: 2, Refused: []wire.Result{{ID: "x", Code: wire.ResultInvalid}},
		}), 2, 0, second, "answer", "", ""},
		{"one event is refused twice", refuseFirstTwice, 2, 0, second, "answer", "", ""},
		{"one is invalid", refuse(wire.ResultInvalid, "e2"), 1, 0, 0, "", "e2", ""},
		{"all are invalid", refuse(wire.ResultInvalid, "e1", "e2", "e3"), 1, 0, 0, "", "e1 e2 e3", ""},
		{"one comes later", refuse(wire.ResultLater, "e2"), 2, second / 10, second, "later", "", ""},
		{"a code of a newer version", refuse("tomorrow", "e2"), 2, second / 10, second, "later", "", ""},
		{"401", fail(wire.CodeUnauthorized, 0), 1, 0, 0, "", "", "e1 e2 e3"},
		{"403", fail(wire.CodeForbidden, 0), 1, 0, 0, "", "", "e1 e2 e3"},
		{"400 for one", fail(wire.CodeBadJSON, 0), 3, 0, 0, "", "e1", ""},
		{"413 for one", fail(wire.CodeTooLarge, 0), 3, 0, 0, "", "e1", ""},
		{"422 for one", fail(wire.CodeInvalid, 0), 3, 0, 0, "", "e1", ""},
		{"404", fail(wire.CodeNotFound, 0), 3, pauseDelay, 31 * second, "status", "", ""},
		{"501", fail(wire.CodeNotImplemented, 0), 3, pauseDelay, 31 * second, "status", "", ""},
	}

	for _, tt := range rows {
		scene(t, tt.scene, func(t *testing.T, s *sidecar, srv *server) {
			s.mustWrite(annsKey, "e1", "e2", "e3")
			srv.script = []reply{tt.first}
			if strings.HasSuffix(tt.scene, " for one") {
				srv.script = []reply{tt.first, tt.first} // for all, and for the half with e1
			}

			took := s.drain()
			atMost := max(tt.atMost, 10*time.Millisecond)
			if n := len(srv.batches()); n != tt.batches || took < tt.atLeast || took > atMost {
				t.Errorf("it took %d batches and %v; want %d, %v to %v", n, took, tt.batches, tt.atLeast, atMost)
			}
			dead, held := strings.Fields(tt.dead), strings.Fields(tt.held)
			wantLane(t, s, queue.LaneDead, dead...)
			wantLane(t, s, queue.LaneHeld, held...)
			if tt.scene != "all there already" {
				wantDelivered(t, srv, slices.DeleteFunc(numbered(3), func(name string) bool {
					return slices.Contains(dead, name) || slices.Contains(held, name)
				})...)
			}
			if tt.retried != "" && s.metric("promptspool_forward_retries_total", tt.retried) == 0 {
				t.Errorf("no retry is counted for %q", tt.retried)
			}
			sent := 3 - len(dead) - len(held)
			if n := s.metric("promptspool_forward_sent_total", ""); n != float64(sent) {
				t.Errorf("%v events are counted as sent; want %d", n, sent)
			}
			if paused := strings.Contains(s.log.String(), "Forwarding pauses"); paused != (tt.atLeast == pauseDelay) {
				t.Errorf("the log tells of a pause: %v", paused)
			}
		})
	}
}

// pauseDelay is how long a key pauses when a person has to look.
const pauseDelay = 30 * time.Second

// refuseFirstTwice names the first event twice and says nothing of another.
func refuseFirstTwice(_ context.Context, _ *server, c call) (wire.BatchAnswer, error) {
	r := wire.Result{ID: c.events[0].ID, Code: wire.ResultInvalid, Reason: "twice"}
	return wire.BatchAnswer{Success: true, Accepted: len(c.events) - 2, Refused: []wire.Result{r, r}}, nil
}

func TestAWindowGoesOutAsOneBatchPerKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
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

func TestOnePoisonEventIsFoundAmongThousands(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.mustWrite(annsKey, numbered(2500)...)
		srv.always = refuseBatchesWith("e1777")
		s.drain()
		reasons := wantLane(t, s, queue.LaneDead, "e1777")
		if reasons[0] != "no: invalid" {
			t.Errorf("it is buried for %q; want the server's words", reasons[0])
		}
		isPoison := func(name string) bool { return name == "e1777" }
		wantDelivered(t, srv, slices.DeleteFunc(numbered(2500), isPoison)...)

		if n := len(srv.batches()); n > 23 {
			t.Errorf("it took %d batches; want three, and two for each of ten halvings", n)
		}
		for _, c := range srv.batches() {
			if len(c.events) > wire.BatchEventsMax {
				t.Errorf("a batch had %d events", len(c.events))
			}
		}
		if _, again := srv.got(); again {
			t.Error("events that were taken were sent again")
		}
	})
}

func TestFourBatchesAreOnTheirWayAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		for i := range 6 {
			key := wire.Secret(fmt.Sprintf("key %d", i))
			srv.keys[key] = annIs
			s.mustWrite(key, fmt.Sprintf("e%d", i))
		}
		srv.always = hang
		s.forward()
		synctest.Wait()
		if n := len(srv.batches()); n != 4 {
			t.Errorf("%d batches are on their way; want 4", n)
		}
	})
}

func TestAServerThatRefusesEverythingMakesForwardingPause(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.mustWrite(annsKey, numbered(20)...)

		srv.set(func(s *server) { s.always = fail(wire.CodeInvalid, 0) })
		s.forward()
		pass(5 * time.Minute)
		wantLane(t, s, queue.LaneDead, numbered(5)...)

		if n := len(srv.batches()); n > 40 {
			t.Errorf("there were %d calls in five minutes of pause; want some to find the events, and one each 30 s", n)
		}
		if s.metric("promptspool_forward_paused", "") != 1 ||
			!strings.Contains(s.log.String(), "Forwarding pauses") {
			t.Error("neither metric nor log tell of the pause")
		}

		srv.set(func(s *server) { s.always = nil })
		pass(31 * time.Second)
		wantLane(t, s, queue.LaneDead, numbered(5)...)
		wantDelivered(t, srv, numbered(20)[5:]...)
	})
}

func TestAProxysSizeLimitIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
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
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
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
		scene(t, name, func(t *testing.T, s *sidecar, srv *server) {
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
	}
}

func TestABacklogIsDeliveredWhileTheAppWritesOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.always = network
		s.forward()

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

// One event that waits by itself is told of, though the server answers and takes all others.
func TestWhyAnEventWaitsIsTold(t *testing.T) {
	large := strings.Repeat("x", 3000)
	tooLarge := func(ctx context.Context, s *server, c call) (wire.BatchAnswer, error) {
		for _, e := range c.events {
			if len(e.Body) > len(large) {
				// Others are delivered while it is on its way.
				s.mu.Unlock()
				<-time.After(1500 * time.Millisecond)
				s.mu.Lock()
				return foreign(413)(ctx, s, c)
			}
		}
		return take(ctx, s, c)
	}
	for name, always := range map[string]reply{
		"too large for a proxy": tooLarge,
		"later":                 refuse(wire.ResultLater, "e1"),
		"away":                  network,
		"a page":                foreign(403),
		"overloaded":            fail(wire.CodeUnavailable, 0),
		"the key's share":       fail(wire.CodeTooMany, time.Second),
		"no route":              fail(wire.CodeNotFound, 0),
	} {
		scene(t, name, func(t *testing.T, s *sidecar, srv *server) {
			srv.always = always
			s.forward()
			events := scores("e1")
			events[0].Body = []byte(`{"name":"e1","score":1,"x":"` + large + `"}`)
			if _, err := s.Record(context.Background(), s.identity(annsKey), events); err != nil {
				t.Fatal(err)
			}
			began := time.Now()

			// Others come and go meanwhile.
			for i := range 50 {
				s.mustWrite(annsKey, fmt.Sprintf("other %d", i))
				<-time.After(time.Second)
				if i < 4 {
					continue
				}
				oldest := s.spool.Status().Oldest
				if s.forwarder.Waits() == "" || oldest.Sub(began) > 4*time.Second {
					t.Fatalf("after %d s: %q since %v, want a reason since %v", i, s.forwarder.Waits(), oldest, began)
				}
			}
			if name == "too large for a proxy" && !strings.Contains(s.log.String(), "too large") {
				t.Error("nothing is logged")
			}

			srv.set(func(s *server) { s.always = nil })
			<-time.After(time.Minute)
			if why := s.forwarder.Waits(); why != "" {
				t.Errorf("all is delivered, and: %s", why)
			}
		})
	}
}
