package proxy_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// holdThree holds events: a1 and a3 of annsKey, b2 of bobsKey. The server knows both keys again.
func (s *sidecar) holdThree() {
	s.hold(annsKey, "a1")
	s.hold(bobsKey, "b2")
	s.hold(annsKey, "a3")
}

// hold writes events that the server refuses for their key, which is good before and afterwards.
func (s *sidecar) hold(key wire.Secret, names ...string) {
	s.t.Helper()
	srv := s.peer.(*server)
	s.mustWrite(key, names...)
	srv.set(func(s *server) { s.always = fail(wire.CodeUnauthorized, 0) })
	s.drain()
	srv.set(func(s *server) { s.always, s.calls = nil, nil })
	<-time.After(verdictAge)
	_, _, _ = s.authenticate(key)
	synctest.Wait()
}

// verdictAge is longer than a verdict is taken without asking again.
const verdictAge = 31 * time.Second

// sequences are those of the events in the held lane, by name.
func (s *sidecar) sequences() map[string]uint64 {
	s.t.Helper()
	seqs := map[string]uint64{}
	for e, err := range s.spool.Lane(queue.LaneHeld) {
		if err != nil {
			s.t.Fatal(err)
		}
		seqs[nameOf(s.t, e.Data)] = e.Seq
	}
	return seqs
}

// named picks events of the held lane by name.
func (s *sidecar) named(names ...string) func(queue.LaneEntry) bool {
	s.t.Helper()
	seqs, wanted := s.sequences(), map[uint64]bool{}
	for _, name := range names {
		wanted[seqs[name]] = true
	}
	return func(e queue.LaneEntry) bool { return wanted[e.Seq] }
}

func every(queue.LaneEntry) bool { return true }
func none(queue.LaneEntry) bool  { return false }

// replay replays held events and wants n to be moved.
func (s *sidecar) replay(n int, pick func(queue.LaneEntry) bool, secret wire.Secret) {
	s.t.Helper()
	if moved, err := s.Replay(context.Background(), queue.LaneHeld, pick, secret); moved != n || err != nil {
		s.t.Fatalf("%d events were moved, %v; want %d", moved, err, n)
	}
}

// keysOf are the keys under which events came to the server, by name.
func (s *server) keysOf() map[string]wire.Secret {
	keys := map[string]wire.Secret{}
	for _, c := range s.batches() {
		for _, name := range c.names() {
			keys[name] = c.key
		}
	}
	return keys
}

func wantKeys(t *testing.T, srv *server, want map[string]wire.Secret) {
	t.Helper()
	if diff := cmp.Diff(want, srv.keysOf()); diff != "" {
		t.Errorf("the keys under which events came (-want +got):\n%s", diff)
	}
}

func TestHeldEventsAreReplayedEachUnderItsOwnKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.holdThree()
		s.replay(0, none, "")
		wantLane(t, s, queue.LaneHeld, "a1", "b2", "a3")
		s.replay(2, s.named("a1", "b2"), "")
		wantLane(t, s, queue.LaneHeld, "a3")
		if n := s.spool.Status().Events; n != 2 {
			t.Errorf("%d events are in the spool; want 2", n)
		}
		s.restart() // what was replayed is on disk, and so is its key
		s.drain()
		wantKeys(t, srv, map[string]wire.Secret{"a1": annsKey, "b2": bobsKey})
	})
}

func TestDeadLettersAreReplayedAsWell(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.always = refuse(wire.ResultInvalid, "e2")
		s.mustWrite(annsKey, "e1", "e2")
		s.drain()
		wantLane(t, s, queue.LaneDead, "e2")
		srv.set(func(s *server) { s.always = nil })
		if moved, err := s.Replay(t.Context(), queue.LaneDead, every, ""); moved != 1 || err != nil {
			t.Fatal(moved, err)
		}
		s.drain()
		wantLane(t, s, queue.LaneDead)
		wantDelivered(t, srv, "e1", "e2")
	})
}

func TestHeldEventsAreReplayedUnderAGivenKeyAndTheirOwnIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.goAway()
		s.mustWrite("nobody's key", "e1", "e2")
		srv.back()
		s.drain()
		before := s.sequences()
		s.replay(2, every, "") // it is refused as before
		s.drain()
		wantLane(t, s, queue.LaneHeld, "e1", "e2")
		if after := s.sequences(); after["e1"] <= before["e2"] {
			t.Errorf("their sequences were %v and are %v; want new ones", before, after)
		}
		wantDelivered(t, srv)

		<-time.After(time.Minute)
		s.replay(2, every, bobsKey)
		wantKeyFiles(t, s, 2)
		s.drain()
		wantLane(t, s, queue.LaneHeld)
		if got := srv.keysOf(); got["e1"] != bobsKey || got["e2"] != bobsKey {
			t.Errorf("they came under %v", got)
		}
		pass(6 * time.Second)
		wantKeyFiles(t, s, 1)
	})
}

func TestAGivenKeyThatIsRefusedAndALaneThatIsClosedMoveNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, _ *server) {
		s.holdThree()
		moved, err := s.Replay(t.Context(), queue.LaneHeld, every, "a key that no server knows")
		if moved != 0 || !wire.IsCode(err, wire.CodeUnauthorized) {
			t.Errorf("%d were moved, %v; want a refusal of the key", moved, err)
		}
		wantLane(t, s, queue.LaneHeld, "a1", "b2", "a3")
		if n := s.spool.Status().Events; n != 0 {
			t.Errorf("%d events are in the spool; want none", n)
		}

		if err := s.spool.Close(); err != nil {
			t.Fatal(err)
		}
		moved, err = s.Replay(t.Context(), queue.LaneHeld, every, "")
		if moved != 0 || !errors.Is(err, queue.ErrClosed) {
			t.Errorf("replay of a closed lane: %d, %v", moved, err)
		}
		if moved, err := s.Purge(queue.LaneHeld, every); moved != 0 || !errors.Is(err, queue.ErrClosed) {
			t.Errorf("purge of a closed lane: %d, %v", moved, err)
		}
	})
}

func TestAnEventThatCannotBeReadIsNamedAndHoldsUpNoOthers(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, _ *server) {
		s.hold(annsKey, "e1", "e2")
		last := s.sequences()["e2"]
		s.damageHeld(func(text []byte) { text[len(text)-1] ^= 1 })
		moved, err := s.Replay(t.Context(), queue.LaneHeld, func(e queue.LaneEntry) bool { return e.Seq == last }, "")
		if moved != 0 || err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("of the damaged one %d were moved, %v", moved, err)
		}
		moved, err = s.Replay(t.Context(), queue.LaneHeld, every, "")
		if moved != 1 || err == nil || !strings.Contains(err.Error(), "1 cannot be read and stay") {
			t.Errorf("%d were moved, %v", moved, err)
		}
		if n := s.spool.Status().Held; n != 1 {
			t.Errorf("%d events stay in the lane; want the damaged one", n)
		}
		if moved, err := s.Purge(queue.LaneHeld, every); moved != 1 || err != nil {
			t.Errorf("%d were purged, %v", moved, err)
		}
	})
}

func TestEventsWhoseOwnKeyIsLostNeedAnother(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.holdThree()
		s.stop()
		if err := os.RemoveAll(s.keyDir()); err != nil {
			t.Fatal(err)
		}
		s.start()
		moved, err := s.Replay(t.Context(), queue.LaneHeld, every, "")
		if moved != 0 || err == nil || !strings.Contains(err.Error(), "--key-file") {
			t.Errorf("%d were moved, %v; want to be told of --key-file", moved, err)
		}
		wantLane(t, s, queue.LaneHeld, "a1", "b2", "a3")
		s.replay(3, every, annsKey)
		s.drain()
		wantKeys(t, srv, map[string]wire.Secret{"a1": annsKey, "b2": annsKey, "a3": annsKey})
	})
}

func TestManyEventsAreReplayedInSeveralCommits(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, _ *server) {
		s.hold(annsKey, numbered(501)...)
		before := s.metric("promptspool_spool_commit_events", "")
		s.replay(501, every, "")
		if n := s.metric("promptspool_spool_commit_events", "") - before; n != 2 {
			t.Errorf("501 events took %v commits; want 2", n)
		}
		wantLane(t, s, queue.LaneHeld)
		if n := s.spool.Status().Events; n != 501 {
			t.Errorf("%d events are in the spool", n)
		}
	})
}

// damageHeld changes the one file of the held lane.
func (s *sidecar) damageHeld(change func(text []byte)) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "spool", "lanes", "held-*"))
	if err != nil || len(files) != 1 {
		s.t.Fatalf("files of the held lane: %v %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		s.t.Fatal(err)
	}
	change(text)
	if err := os.WriteFile(files[0], text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// The file is damaged while they are replayed, so that it cannot be written without them: as after a
// crash between the two steps,
// they are in both places. The server gets them twice, with the same ids, and none is lost.
func TestEventsThatAreReplayedAndNotReleasedComeTwice(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		s.hold(annsKey, "e1", "e2", "e3")
		seqs := s.sequences()
		allButLast := func(e queue.LaneEntry) bool {
			if e.Seq == seqs["e3"] {
				s.damageHeld(func(text []byte) { text[0] ^= 1 })
			}
			return e.Seq != seqs["e3"]
		}
		if moved, err := s.Replay(t.Context(), queue.LaneHeld, allButLast, ""); moved != 0 || err == nil {
			t.Fatalf("%d were moved, %v; want an error", moved, err)
		}

		s.restart()
		s.drain()
		wantDelivered(t, srv, "e1", "e2")
		isThird := func(e queue.LaneEntry) bool { return e.Seq == seqs["e3"] }
		if moved, err := s.Purge(queue.LaneHeld, isThird); moved != 1 || err != nil {
			t.Fatalf("purging the one that was not picked: %d, %v", moved, err)
		}
		wantLane(t, s, queue.LaneHeld, "e1", "e2")

		s.replay(2, every, "")
		s.drain()
		wantLane(t, s, queue.LaneHeld)
		if diff := cmp.Diff(map[string]int{"e1": 2, "e2": 2}, srv.of); diff != "" {
			t.Errorf("how often each came (-want +got):\n%s", diff)
		}

		ids := map[string]string{}
		for _, c := range srv.batches() {
			for _, e := range c.events {
				if id := ids[nameIn(e)]; id != "" && id != e.ID {
					t.Errorf("%s came with the ids %s and %s", nameIn(e), id, e.ID)
				}
				ids[nameIn(e)] = e.ID
			}
		}
	})
}

func TestPurgedEventsAndTheirKeyAreGoneAndTheOthersStay(t *testing.T) {
	bubble(t, func(t *testing.T, s *sidecar, srv *server) {
		srv.goAway()
		s.mustWrite("nobody's key", "n1", "n2")
		s.mustWrite("nobody else's key", "o3")
		srv.back()
		s.drain()

		if moved, err := s.Purge(queue.LaneHeld, none); moved != 0 || err != nil {
			t.Fatal(moved, err)
		}
		if moved, err := s.Purge(queue.LaneHeld, s.named("n1", "n2")); moved != 2 || err != nil {
			t.Fatal(moved, err)
		}
		wantLane(t, s, queue.LaneHeld, "o3")

		pass(6 * time.Second)
		wantKeyFiles(t, s, 1)

		s.restart()
		wantLane(t, s, queue.LaneHeld, "o3")
		if moved, err := s.Purge(queue.LaneDead, every); moved != 0 || err != nil {
			t.Errorf("of the other lane %d were removed, %v", moved, err)
		}
		wantDelivered(t, srv)
	})
}
