package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"strings"
	"testing"
)

// shelf is the spool of a sidecar in memory. It records what was picked for replay and
// purge.
type shelf struct {
	lanes  map[string][]SpoolEvent
	broken error // yielded after the events
	err    error // returned by the other methods
	picks  []Pick
	left   chan struct{} // closed when the reader of the lane "endless" is gone
}

func (s *shelf) Check(context.Context) (any, error) { return map[string]int{"events": 2}, s.err }

func (s *shelf) Events(_ context.Context, lane string) iter.Seq2[SpoolEvent, error] {
	return func(yield func(SpoolEvent, error) bool) {
		for lane == "endless" {
			if !yield(SpoolEvent{Data: make([]byte, 1<<10)}, nil) {
				close(s.left)
				return
			}
		}

		for _, e := range s.lanes[lane] {
			if !yield(e, nil) {
				return
			}
		}

		if lane == "panicking" {
			panic("a fault of ours")
		}
		if s.broken != nil {
			yield(SpoolEvent{Seq: 9, Key: 3, Data: []byte("rubbish")}, s.broken)
		}
	}
}

func (s *shelf) Replay(_ context.Context, p Pick) (int, error) {
	s.picks = append(s.picks, p)
	return len(p.Sequences), s.err
}

func (s *shelf) Purge(_ context.Context, p Pick) (int, error) {
	s.picks = append(s.picks, p)
	return 100, s.err
}

// spoolControl starts a control socket over a spool and returns its folder.
func spoolControl(t *testing.T, s Spool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ln, err := ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, NewControl(ControlConfig{
		Spool:  s,
		Status: func() any { return "fine" },
		Logger: slog.New(slog.DiscardHandler),
	}), ln)

	return dir
}

// streamed returns the events of a lane. Each line of the stream is one of them.
func streamed(t *testing.T, dir, query string) (events []SpoolEvent) {
	t.Helper()
	err := ControlLong(t.Context(), dir, "GET", "/spool/events"+query, nil, func(r io.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}

		for line := range bytes.Lines(text) {
			var e SpoolEvent
			if err := json.Unmarshal(line, &e); err != nil {
				return err
			}
			events = append(events, e)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return events
}

func TestASpoolIsCheckedReplayedAndPurged(t *testing.T) {
	s := &shelf{}
	dir := spoolControl(t, s)
	call := func(method, path string, body, answer any) {
		t.Helper()
		if err := Control(t.Context(), dir, method, path, body, answer); err != nil {
			t.Fatal(err)
		}
	}

	var report map[string]int
	call("GET", "/spool/check", nil, &report)
	same(t, "report", report, map[string]int{"events": 2})

	replay, purge := Pick{Lane: "held", Sequences: []uint64{3, 1 << 63}, Key: "ps_secret"}, Pick{All: true}
	var moved Moved
	call("POST", "/spool/replay", replay, &moved)
	same(t, "replayed", moved, Moved{2})
	call("POST", "/spool/purge", purge, &moved)
	same(t, "purged", moved, Moved{100})
	same(t, "the picks", s.picks, []Pick{replay, purge})
}

func TestTheEventsOfASpoolAreStreamedLaneByLane(t *testing.T) {
	waiting := SpoolEvent{Seq: 1, Key: 7, At: noon, Data: []byte("a line with \x00, \xff and a break\n")}
	held := SpoolEvent{
		Seq:     2,
		Key:     8,
		At:      noon,
		Lane:    "held",
		Reason:  "the key is refused",
		MovedAt: noon,
		Data:    []byte("{}"),
	}
	s := &shelf{lanes: map[string][]SpoolEvent{"": {waiting, {Seq: 4}}, "held": {held}}}

	dir := spoolControl(t, s)
	same(t, "the waiting events", streamed(t, dir, ""), []SpoolEvent{waiting, {Seq: 4}})
	same(t, "the held events", streamed(t, dir, "?lane=held"), []SpoolEvent{held})
	same(t, "an empty lane", streamed(t, dir, "?lane=dead"), []SpoolEvent(nil))
}

func TestAnEventThatCannotBeReadComesWithItsReason(t *testing.T) {
	s := &shelf{
		lanes:  map[string][]SpoolEvent{"": {{Seq: 8, Data: []byte("{}")}}},
		broken: errors.New("event 9 is damaged"),
	}
	want := []SpoolEvent{{Seq: 8, Data: []byte("{}")}, {Seq: 9, Key: 3, Error: "event 9 is damaged"}}
	same(t, "the waiting events", streamed(t, spoolControl(t, s), ""), want)
}

// A goroutine of fasthttp writes the stream. A panic there would end the process, and
// this test with it.
func TestAPanicInAStreamEndsItWithAnError(t *testing.T) {
	dir := spoolControl(t, &shelf{lanes: map[string][]SpoolEvent{
		"panicking": {{Seq: 1, Key: 2, Data: []byte("{}")}},
	}})

	events := streamed(t, dir, "?lane=panicking")
	if len(events) != 2 || events[0].Seq != 1 || events[0].Error != "" ||
		!strings.Contains(events[1].Error, "log") {
		t.Errorf("the stream has %+v", events)
	}

	if again := streamed(t, dir, "?lane=panicking"); len(again) != 2 {
		t.Errorf("the next stream has %+v", again)
	}
}

func TestAStreamEndsWhenItsReaderGoes(t *testing.T) {
	s := &shelf{left: make(chan struct{})}
	enough := errors.New("enough")

	err := ControlLong(t.Context(), spoolControl(t, s), "GET", "/spool/events?lane=endless", nil,
		func(r io.Reader) error {
			if _, err := io.ReadFull(r, make([]byte, 100)); err != nil {
				return err
			}
			return enough
		})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	<-s.left
}

// Half of the events must never be mistaken for all of them.
func TestAStreamThatBreaksOffIsAnError(t *testing.T) {
	dir := t.TempDir()
	ln, err := ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()

	// A process that dies after its first event.
	go func() {
		if conn, err := ln.Accept(); err == nil {
			answerAndClose(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n")
		}
	}()

	err = ControlLong(t.Context(), dir, "GET", "/spool/events", nil, func(r io.Reader) error {
		got, err := io.ReadAll(r)
		same(t, "the stream", string(got), "{}\n")
		return err
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error is %v, want one that names the folder of the process", err)
	}
}
