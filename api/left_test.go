package api_test

import (
	"context"
	"net"
	"testing"
	"time"

	"promptspool/api"
	"promptspool/api/wire"
)

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
