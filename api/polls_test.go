package api_test

import (
	"context"
	"sync"
	"testing"

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
