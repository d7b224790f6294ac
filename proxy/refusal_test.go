package proxy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// refuseWhere takes a batch of a known key, all but the events that bad selects: these get r.
func refuseWhere(r wire.Result, bad func(name string) bool) reply {
	return func(_ context.Context, s *server, c call) (wire.BatchAnswer, error) {
		a := wire.BatchAnswer{Success: true}
		if _, known := s.keys[c.key]; !known {
			return a, unauthorized
		}
		for _, e := range c.events {
			if bad(nameIn(e)) {
				r.ID = e.ID
				a.Refused = append(a.Refused, r)
				continue
			}
			s.keep(e)
			a.Accepted++
		}
		return a, nil
	}
}

func hasPrefix(prefix string) func(string) bool {
	return func(name string) bool { return strings.HasPrefix(name, prefix) }
}

var (
	atLimit = wire.Result{Code: wire.ResultInvalid, Cause: wire.CauseLimit, Reason: "it has 10000 events"}
	invalid = wire.Result{Code: wire.ResultInvalid, Reason: "it is bad"}
)

// TestEventsBeyondALimitHoldUpNothing has 20,000 events of a full record between other events of
// the same key.
func TestEventsBeyondALimitHoldUpNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.bytesMax = 16 << 20 // 256 KiB of letters of limits a key
		s.restart()
		srv.always = refuseWhere(atLimit, hasPrefix("full"))

		var others, bobs []string
		for i := range 50 {
			var full []string
			for j := range 100 {
				full = append(full, fmt.Sprintf("full %d-%d", i, j))
			}
			s.mustWrite(annsKey, full...)
			others = append(others, fmt.Sprintf("a%d", i))
			s.mustWrite(annsKey, others[i])
		}
		s.forward()
		for i := range 10 {
			bobs = append(bobs, fmt.Sprintf("b%d", i))
			s.mustWrite(bobsKey, bobs[i])
			<-time.After(100 * time.Millisecond)
		}

		synctest.Wait()
		wantDelivered(t, srv, append(others, bobs...)...)
		st := s.spool.Status()
		if st.Events != 0 || st.Dead+st.Dropped != 5000 || st.Dead < 250 || st.Dropped < 2500 {
			t.Errorf("the spool has %+v; want 5,000 dead letters, most of them dropped", st)
		}
		dropped := s.metric("promptspool_dead_letters_dropped_total", "")
		if paused := s.metric("promptspool_forward_paused", ""); int(dropped) != st.Dropped || paused != 0 {
			t.Errorf("%v are counted as dropped, want %d; paused: %v", dropped, st.Dropped, paused)
		}

		// Those that are left are the newest.
		names, reasons := s.lane(queue.LaneDead)
		if last := len(names) - 1; names[last] != "full 49-99" || reasons[0] != atLimit.Reason {
			t.Errorf("the last dead letter is %s, and the first is there for %q", names[last], reasons[0])
		}
		log := s.log.String()
		lines := strings.Count(log, "record is at a limit. They go")
		if lines == 0 || lines > 25 || !strings.Contains(log, atLimit.Reason) {
			t.Errorf("the log has %d lines about 5,000 events; want one for each batch, with the reason", lines)
		}
		if strings.Contains(log, "--upstream") || strings.Contains(log, "versions") {
			t.Error("the log blames versions or the server's address")
		}
	})
}

// TestAPauseEndsWhenTheServerTakesALaterEvent has the server refuse events without the cause of a
// limit: more than it is believed, so forwarding pauses.
func TestAPauseEndsWhenTheServerTakesALaterEvent(t *testing.T) {
	isEvent := hasPrefix("e")
	isSeventh := func(name string) bool { return strings.HasSuffix(name, "7") }
	for _, tt := range []struct {
		scene  string
		events []string
		bad    func(name string) bool
		whole  bool // it refuses each batch with one of them as a whole
		pauses bool
		atMost time.Duration
	}{
		{"five", append(numbered(5), "good"), isEvent, false, false, time.Second},
		{"a row", append(numbered(30), "good"), isEvent, false, true, time.Minute},
		{"a row that is searched for", append(numbered(30), "good"), isEvent, true, true, 4 * time.Minute},
		{"hundreds in a row", append(numbered(300), "good"), isEvent, false, true, 10 * time.Minute},
		{"one in ten", numbered(1200), isSeventh, false, true, 5 * time.Minute},
	} {
		scene(t, tt.scene, func(t *testing.T, s *sidecar, srv *server) {
			s.mustWrite(annsKey, tt.events...)
			one := refuseWhere(invalid, tt.bad)
			srv.always = func(ctx context.Context, s *server, c call) (wire.BatchAnswer, error) {
				if tt.whole && slices.ContainsFunc(c.names(), tt.bad) {
					return fail(wire.CodeInvalid, 0)(ctx, s, c)
				}
				return one(ctx, s, c)
			}

			if took := s.drain(); took > tt.atMost {
				t.Errorf("it took %v; want %v at most", took, tt.atMost)
			}
			var good, bad []string
			for _, name := range tt.events {
				if tt.bad(name) {
					bad = append(bad, name)
				} else {
					good = append(good, name)
				}
			}
			wantDelivered(t, srv, good...)
			if dead, _ := s.lane(queue.LaneDead); !slices.Equal(sorted(dead), sorted(bad)) {
				t.Errorf("%d events are dead; want the %d bad ones", len(dead), len(bad))
			}
			paused := s.metric("promptspool_forward_paused", "") != 0
			if told := strings.Contains(s.log.String(), "Forwarding pauses"); paused || told != tt.pauses {
				t.Errorf("at the end it is paused: %v; the log tells of a pause: %v", paused, told)
			}
		})
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

// TestBadEventsAreBuriedAndAllOthersArrive draws rows of bad and of good events of two keys, and
// stops and starts the forwarder in between.
func TestBadEventsAreBuriedAndAllOthersArrive(t *testing.T) {
	limitChecks(t, 15)
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		written := 0
		rapid.Check(testingT{t}, func(t *rapid.T) {
			srv.received, srv.of = nil, map[string]int{}
			if _, err := s.Purge(queue.LaneDead, every); err != nil {
				t.Fatal(err)
			}

			want := map[string][]string{} // by what their names begin with
			write := func(key wire.Secret, kind string, count int) {
				var names []string
				for range count {
					written++
					names = append(names, fmt.Sprintf("%s%d", kind, written))
				}
				want[kind] = append(want[kind], names...)
				s.mustWrite(key, names...)
			}
			kinds := rapid.SampledFrom([]string{"bad", "good", "full", "later"})
			for range rapid.IntRange(1, 8).Draw(t, "rows") {
				key := rapid.SampledFrom([]wire.Secret{annsKey, bobsKey}).Draw(t, "key")
				write(key, kinds.Draw(t, "kind"), rapid.IntRange(1, 30).Draw(t, "events"))
			}
			wellAt := time.Now().Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "seconds of later")) * time.Second)
			inBatches := rapid.Bool().Draw(t, "batches are refused as a whole")
			srv.always = func(ctx context.Context, s *server, c call) (wire.BatchAnswer, error) {
				bad := slices.ContainsFunc(c.names(), hasPrefix("bad"))
				if inBatches && bad {
					return fail(wire.CodeInvalid, 0)(ctx, s, c)
				}
				a := wire.BatchAnswer{Success: true}
				for _, e := range c.events {
					r := wire.Result{ID: e.ID, Code: wire.ResultInvalid}
					switch name := nameIn(e); {
					case strings.HasPrefix(name, "bad"):
					case strings.HasPrefix(name, "full"):
						r.Cause = wire.CauseLimit
					case strings.HasPrefix(name, "later") && time.Now().Before(wellAt):
						r.Code = wire.ResultLater
					default:
						s.keep(e)
						a.Accepted++
						continue
					}
					a.Refused = append(a.Refused, r)
				}
				return a, nil
			}
			for range rapid.IntRange(0, 2).Draw(t, "restarts") {
				stop := s.forward()
				<-time.After(time.Duration(rapid.IntRange(0, 100).Draw(t, "uptime")) * time.Second)
				stop()
			}
			// Each doubt ends with an event that is taken after it.
			stop := s.forward()
			for rounds := 0; s.spool.Frontier() < s.spool.Next(); rounds++ {
				if rounds == 4 {
					t.Fatal("the spool does not empty")
				}
				write(annsKey, "good", 1)
				write(bobsKey, "good", 1)
				<-time.After(10 * time.Minute)
			}
			stop()

			got, _ := srv.got() // some twice, after a restart
			if all := sorted(slices.Concat(want["good"], want["later"])); !slices.Equal(got, all) {
				t.Fatalf("at the server are %v, want %v", got, all)
			}
			dead, _ := s.lane(queue.LaneDead)
			if all := sorted(slices.Concat(want["bad"], want["full"])); !slices.Equal(sorted(dead), all) {
				t.Fatalf("dead are %v; want %v", dead, all)
			}
		})
	})
}
