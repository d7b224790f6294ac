package proxy_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// testingT hides from rapid what may not be called in a bubble.
type testingT struct{ rapid.TB }

// TestEveryEventArrivesAndNoneIsAckedBefore plays random faults to a forwarder that is stopped and
// started again in between.
func TestEveryEventArrivesAndNoneIsAckedBefore(t *testing.T) {
	limitChecks(t, 40)
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		nameOf := map[uint64]string{} // by sequence
		written := 0

		// wantArrived checks that what left the spool is at the server. It may run beside the forwarder.
		wantArrived := func(t rapid.TB, arrived map[string]int) {
			for seq := s.spool.Frontier() - 1; nameOf[seq] != ""; seq-- {
				if arrived[nameOf[seq]] == 0 {
					t.Errorf("%s was acknowledged before it arrived", nameOf[seq])
				}
			}
		}
		rapid.Check(testingT{t}, func(t *rapid.T) {
			clear(nameOf) // what earlier rounds wrote was judged by them
			srv.before = func(call) { wantArrived(t, srv.of) }
			srv.script = nil
			for range rapid.IntRange(0, 12).Draw(t, "faults") {
				fault := rapid.SampledFrom(faults).Draw(t, "fault")
				srv.script = append(srv.script, fault.reply(t))
			}
			for range rapid.IntRange(1, 4).Draw(t, "writes") {
				key := rapid.SampledFrom([]wire.Secret{annsKey, bobsKey}).Draw(t, "key")
				var names []string
				for range rapid.IntRange(1, 5).Draw(t, "events") {
					written++
					names = append(names, fmt.Sprintf("e%d", written))
				}
				first := s.spool.Status().Next
				s.mustWrite(key, names...)
				for i, name := range names {
					nameOf[first+uint64(i)] = name
				}
			}
			for range rapid.IntRange(0, 2).Draw(t, "restarts") {
				stop := s.forward()
				uptimes := []time.Duration{0, time.Millisecond, time.Second, time.Minute}
				<-time.After(rapid.SampledFrom(uptimes).Draw(t, "uptime"))
				stop()
				wantArrived(t, srv.of)
			}
			s.drain()
			wantArrived(t, srv.of)
			dead, _ := s.lane(queue.LaneDead)
			held, _ := s.lane(queue.LaneHeld)
			if len(dead)+len(held) > 0 {
				t.Fatalf("no event was at fault, and in the lanes are %v", slices.Concat(dead, held))
			}
		})
	})
}

// fault is a way in which the delivery of a batch fails, for now.
type fault struct {
	name  string
	reply func(*rapid.T) reply
}

func (f fault) String() string { return f.name }

func always(r reply) func(*rapid.T) reply { return func(*rapid.T) reply { return r } }

var faults = []fault{
	{"network", always(network)},
	{"lost", always(lost)},
	{"hang", always(hang)},
	{"foreign", func(t *rapid.T) reply {
		return foreign(rapid.SampledFrom([]int{200, 302, 401, 403, 404, 413, 422, 502}).Draw(t, "status"))
	}},
	{"status", func(t *rapid.T) reply {
		code := rapid.SampledFrom([]wire.Code{
			wire.CodeTooMany, wire.CodeUnavailable, wire.CodeInternal, wire.CodeNotFound, wire.CodeConflict,
		}).Draw(t, "code")
		return fail(code, time.Duration(rapid.IntRange(0, 60).Draw(t, "Retry-After"))*time.Second)
	}},
	{"lying", func(t *rapid.T) reply {
		wrong := rapid.SampledFrom([]int{-1, 1}).Draw(t, "off by")
		return func(_ context.Context, _ *server, c call) (wire.BatchAnswer, error) {
			return wire.BatchAnswer{Success: true, Accepted: len(c.events) + wrong}, nil
		}
	}},
	{"refused twice", func(t *rapid.T) reply {
		return func(ctx context.Context, s *server, c call) (wire.BatchAnswer, error) {
			if len(c.events) == 1 {
				return network(ctx, s, c)
			}
			return refuseFirstTwice(ctx, s, c)
		}
	}},
	{"later", func(t *rapid.T) reply {
		keep := rapid.IntRange(0, 3).Draw(t, "taken at most")
		return func(ctx context.Context, s *server, c call) (wire.BatchAnswer, error) {
			names := c.names()
			return refuse(wire.ResultLater, names[min(keep, len(names)):]...)(ctx, s, c)
		}
	}},
}
