package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

// crashWriters are the goroutines that write while nodes crash, each to an account of its own.
const crashWriters = 6

// crashing is a database whose nodes crash while two servers write to it.
type crashing struct {
	servers [2]*postgres.DB
	acked   [crashWriters]atomic.Int64 // by account: the records 0 to acked-1 were acknowledged
}

// On Citus each node crashes in turn, a worker in the middle of commits over several. Elsewhere
// there is one node. PROMPTSPOOL_CRASHES is how often each crashes.
func TestNothingAcknowledgedIsLostWhenANodeCrashes(t *testing.T) {
	dsn, workers := "", []string{}
	if os.Getenv("TEST_CITUS_DSN") == "" {
		// Others share the usual server, whose commits do not wait for the disk.
		dsn = postgrestest.Start(t, postgrestest.Options{Fsync: true}).Database(t)
	} else {
		dsn = postgrestest.DSN(t)
		workers = postgrestest.Workers(t, dsn)
	}
	times := 1
	if n, err := strconv.Atoi(os.Getenv("PROMPTSPOOL_CRASHES")); err == nil {
		times = n
	}

	c := &crashing{servers: [2]*postgres.DB{open(t, dsn), open(t, dsn)}}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for n := range crashWriters {
		writers.Go(func() { c.write(ctx, t, n) })
	}
	for range times {
		for _, node := range append(workers, dsn) {
			c.progress(t)
			postgrestest.Crash(t, node)
		}
	}
	c.progress(t)
	stop()
	writers.Wait()

	postgrestest.Recover(t, dsn)
	c.check(t)
}

func crashAccount(n int) string { return fmt.Sprintf("crash-%d", n) }

// crashBatch is how many records are written together: so many that they are copied.
const crashBatch = 20

// write logs requests with a score each, a batch after the other, until ctx ends.
func (c *crashing) write(ctx context.Context, t *testing.T, n int) {
	for batch := 0; ctx.Err() == nil; batch++ {
		var requests, scores []archive.Event
		for i := batch * crashBatch; i < (batch+1)*crashBatch; i++ {
			id := databasetest.ID(i)
			requests = append(requests, databasetest.Event(t, 2*i, wire.KindRequest, id, `{"function_name":"f"}`))
			scores = append(scores, databasetest.Event(t, 2*i+1, wire.KindScore, id, `{"name":"n","score":1}`))
		}

		// In two calls, since a record that exists is written in another way than a new one.
		for _, events := range [][]archive.Event{requests, scores} {
			// As a sidecar does: the same again until it is acknowledged.
			for {
				_, err := c.servers[batch%len(c.servers)].Apply(ctx, crashAccount(n), events)
				if err == nil {
					break
				}
				if ctx.Err() != nil {
					return
				}
				if !wire.IsCode(err, wire.CodeUnavailable) {
					t.Errorf("a write is answered with %v", err)
					return
				}
			}
		}
		c.acked[n].Store(int64(batch+1) * crashBatch)
	}
}

// progress waits until every writer has had more records acknowledged.
func (c *crashing) progress(t *testing.T) {
	t.Helper()
	var want [crashWriters]int64
	for n := range want {
		want[n] = c.acked[n].Load() + 3*crashBatch
	}

	deadline := time.After(2 * time.Minute)
	for n := range want {
		for c.acked[n].Load() < want[n] {
			select {
			case <-deadline:
				t.Fatalf("writer %d does not get on", n)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// check verifies that all that was acknowledged is there, once.
func (c *crashing) check(t *testing.T) {
	t.Helper()
	lost, all := 0, int64(0)
	for n := range crashWriters {
		acked := c.acked[n].Load()
		all += acked
		for i := range acked {
			state, _, err := c.servers[0].Record(t.Context(), crashAccount(n), databasetest.ID(int(i)))
			if err != nil || len(state.History) != 2 {
				lost++
				t.Logf("record %d of %s: %d events, %v", i, crashAccount(n), len(state.History), err)
			}
		}
	}

	if lost > 0 {
		t.Errorf("%d of %d acknowledged records are not whole", lost, all)
	}
	t.Logf("%d records were acknowledged", all)
	if err := c.servers[0].Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
}
