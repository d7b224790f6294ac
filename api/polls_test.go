package api_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"promptspool/api"
	"promptspool/api/wire"
)

// changes has none: a poll waits until it is released.
type changes struct {
	waiting chan bool // gets one for each poll that begins to wait
	release chan bool
}

func (c *changes) Changes(_ context.Context, _ wire.Identity, q wire.ChangesQuery) (wire.Changes, error) {
	if q.Wait > 0 {
		c.waiting <- true
		<-c.release
	}

	return wire.Changes{Success: true, Revision: q.Since, Names: []string{}}, nil
}

func TestTheLongPollsOfAKeyAreBounded(t *testing.T) {
	feed := &changes{waiting: make(chan bool), release: make(chan bool)}
	s := start(t, func(c *api.Config) { c.Changes = feed })

	var polls sync.WaitGroup
	poll := func(key string) {
		polls.Go(func() {
			if a := s.call("GET", "/sync/changes?since=1&wait=60s", "", "X-API-KEY", key); a.Status != 200 {
				t.Errorf("%+v", a)
			}
		})
	}
	for range 100 {
		poll("app")
		<-feed.waiting
	}

	// One more is answered immediately; another key's waits.
	if a := s.call("GET", "/sync/changes?since=1&wait=60s", "", "X-API-KEY", "app"); a.Status != 200 {
		t.Errorf("one poll more: %+v", a)
	}
	poll("full")
	<-feed.waiting

	close(feed.release)
	polls.Wait()

	// When they have ended, there is space again.
	feed.release = make(chan bool)
	poll("app")
	<-feed.waiting
	close(feed.release)
	polls.Wait()
}

// endless searches until its call ends.
type endless struct {
	querier
	begun, ended chan bool
}

func (e endless) Search(ctx context.Context, _ wire.Identity, _ wire.Search) (wire.SearchPage, error) {
	e.begun <- true
	for ctx.Err() == nil { // as a store does between rows
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	e.ended <- true

	return wire.SearchPage{}, ctx.Err()
}

func TestASearchEndsWhenItsCallerLeaves(t *testing.T) {
	// The machine may be busy: one of five attempts is enough.
	best := time.Hour
	for round := 0; round < 5 && best > time.Second; round++ {
		best = min(best, leaveSearch(t))
	}
	if best > time.Second {
		t.Errorf("it ended after %v at best", best)
	}
}

// leaveSearch starts a search that does not end, leaves, and returns how long the search went on.
func leaveSearch(t *testing.T) time.Duration {
	t.Helper()
	e := endless{begun: make(chan bool, 1), ended: make(chan bool, 1)}
	_, addr := startTCP(t, func(c *api.Config) { c.Records = e })
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}

	_, err = conn.Write([]byte("POST /api/public/v2/requests/search HTTP/1.1\r\n" +
		"Host: here\r\nX-API-KEY: full\r\nContent-Length: 2\r\n\r\n{}"))
	if err != nil {
		t.Fatal(err)
	}
	<-e.begun
	_ = conn.Close()

	left := time.Now()
	select {
	case <-e.ended:
		return time.Since(left)
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on without its caller")
		return 0
	}
}
