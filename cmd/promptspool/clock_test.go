package main

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// sidecarWithClock runs a sidecar in this process, with a clock of its own, until what stop does or the end of the test.
func sidecarWithClock(t *testing.T, data, upstream string, now func() time.Time, log io.Writer) (n *node, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	addr, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- sidecar(ctx, sidecarConfig{
			data: data, listen: address{at: "127.0.0.1:0"}, opsListen: address{at: "127.0.0.1:0"}, name: "pod-clock", upstream: "http://" + upstream,
			spoolBytesMax: 1 << 30, diskMax: 2 << 30, drain: 5 * time.Second, now: now,
			logger: slog.New(slog.NewTextHandler(log, nil)), ready: func(a string) { addr <- a },
		})
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	select {
	case a := <-addr:
		return &node{t: t, addr: a, data: data}, stop
	case err := <-ended:
		t.Fatal("the sidecar did not start: ", err)
		return nil, nil
	}
}

func score(id string, value int) map[string]any {
	return map[string]any{"request_id": id, "score": value}
}

func TestScoresOfASidecarWhoseClockIsAnHourAheadDoNotBeatEverybodysForAnHour(t *testing.T) {
	server := startPlainServer(t, freePort(t))
	log := new(lockedLog)
	ahead, _ := sidecarWithClock(t, t.TempDir(), server.addr, func() time.Time { return time.Now().Add(time.Hour) }, log)
	right, _ := sidecarWithClock(t, t.TempDir(), server.addr, nil, io.Discard)

	id := right.track("/rest/track-request", adminKey, chat())
	is := func(value float64, count int) func(wire.Record) bool {
		return func(r wire.Record) bool {
			return len(r.Events) == count && len(r.Scores) == 1 && float64(r.Scores[0].Score) == value
		}
	}
	right.track("/rest/track-score", adminKey, score(id, 10))
	server.record(id, is(10, 2))
	ahead.track("/rest/track-score", adminKey, score(id, 20)) // later, and so it wins
	server.record(id, is(20, 3))
	right.track("/rest/track-score", adminKey, score(id, 30)) // later than that, though its accepted time is an hour before
	r := server.record(id, is(30, 4))
	times := map[bool]int{}
	for _, e := range r.Events {
		times[e.AcceptedAt.After(time.Now().Add(50*time.Minute))]++
	}
	if times[true] != 1 {
		t.Errorf("%d of the accepted times lie an hour ahead; want that of one event: %+v", times[true], r.Events)
	}
	right.eventually(func() bool { return strings.Contains(log.String(), "clock and the server's differ") }, func() string { return "the log does not tell that the clock is wrong: " + log.String() })
}

func TestAcceptedTimesDoNotGoBackOverARestartWithAClockThatDoes(t *testing.T) {
	server := startPlainServer(t, freePort(t))
	data := t.TempDir()
	first, stop := sidecarWithClock(t, data, server.addr, nil, io.Discard)
	id := first.track("/rest/track-request", adminKey, chat())
	first.track("/rest/track-score", adminKey, score(id, 10))
	server.record(id, events(2))
	stop() // all is delivered

	second, _ := sidecarWithClock(t, data, server.addr, func() time.Time { return time.Now().Add(-time.Hour) }, io.Discard)
	second.track("/rest/track-score", adminKey, score(id, 20))
	later := second.track("/rest/track-request", adminKey, chat())
	if later <= id {
		t.Errorf("the id %s was minted after %s", later, id)
	}
	server.record(id, func(r wire.Record) bool { return len(r.Events) == 3 && len(r.Scores) == 1 && r.Scores[0].Score == 20 })
}
