//go:build linux && bench

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

// The loads of BenchmarkFleet. A sidecar that is not behind sends each record by itself.
const (
	fleetRate   = 10 // records a second of a sidecar
	fleetTime   = 10 * time.Second
	fleetIdle   = 2000 // sidecars that only beat and wait for changes
	fleetKeys   = 40
	fleetOneKey = 300 // of which all have the same key
	fleetWindow = 30 * time.Second
)

// fleet is the server and the database whose processor is measured.
type fleet struct {
	b        *testing.B
	crowd    *harness.Crowd
	server   *harness.Node
	database *postgrestest.Server
	conn     *pgx.Conn // beside those of the server
}

// BenchmarkFleet plays sidecars against a server on PostgreSQL and measures what the page Scale
// rests on: the processor of the server and of the database for a record, and for a sidecar that
// has nothing to send.
func BenchmarkFleet(b *testing.B) {
	for range b.N {
		database := postgrestest.Start(b, postgrestest.Options{Fsync: true})
		dsn := database.Database(b)
		server := harness.BeginPlain(b, b.TempDir(), "127.0.0.1:0", "server", "--archive", dsn)
		if !server.Takes() {
			b.Fatal("the server does not start")
		}
		conn, err := pgx.Connect(b.Context(), dsn)
		if err != nil {
			b.Fatal(err)
		}
		f := &fleet{b, harness.NewCrowd(b, server), server, database, conn}
		keys := f.keys(fleetKeys)

		f.deliver("to get warm", keys, fleetKeys, 4000, 10, 0)
		for _, sidecars := range []int{10, 30, 100} {
			f.deliver(fmt.Sprintf("%d sidecars, %d records/s", sidecars, sidecars*fleetRate),
				keys, sidecars, sidecars*fleetRate*int(fleetTime/time.Second), 1, fleetTime)
		}
		f.deliver("a backlog", keys, 8, 20_000, 500, 0)
		f.idle("idle sidecars", keys, fleetIdle)
		f.idle("idle sidecars of one key", keys[:1], fleetOneKey)
		_ = conn.Close(b.Context())
		server.Kill()
	}
}

// commits returns how many transactions the database has committed, except in the last second.
func (f *fleet) commits() (n int64) {
	f.b.Helper()
	if err := f.conn.QueryRow(f.b.Context(),
		`SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`).Scan(&n); err != nil {
		f.b.Fatal(err)
	}

	return n
}

// keys makes keys, each of an account of its own.
func (f *fleet) keys(count int) (keys []string) {
	f.b.Helper()
	program, err := harness.PlainBinary()
	if err != nil {
		f.b.Fatal(err)
	}
	for i := range count {
		out, err := exec.Command(program, "keys", "create", "--data", f.server.Data,
			"--project", fmt.Sprint("account-", i), "-o", "json").Output()
		var key struct{ Key string }
		if err == nil {
			err = json.Unmarshal(out, &key)
		}
		if err != nil {
			f.b.Fatal(err)
		}
		keys = append(keys, key.Key)
	}

	return keys
}

// used returns the processor's time of the server, and of all processes that the database has or
// had.
func (f *fleet) used() (server, database time.Duration) {
	f.b.Helper()
	ticks := 0
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, _ := os.ReadFile(path) // empty if the process has just ended
		_, after, _ := strings.Cut(string(text), ") ")
		var state string
		var parent, skip, user, system, userEnded, systemEnded int
		_, _ = fmt.Sscan(after, &state, &parent, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip,
			&user, &system, &userEnded, &systemEnded)

		switch {
		case path == fmt.Sprintf("/proc/%d/stat", f.database.Pid()):
			ticks += user + system + userEnded + systemEnded
		case parent == f.database.Pid():
			ticks += user + system
		}
	}

	return cpuOf(f.b, f.server), time.Duration(ticks) * 10 * time.Millisecond // the kernel counts in hundredths
}

// deliver lets sidecars send records of 4 KB in batches, evenly over a time, or as fast as they
// are taken.
func (f *fleet) deliver(name string, keys []string, sidecars, records, batch int, over time.Duration) {
	f.b.Helper()
	clients, batches := make([]*http.Client, sidecars), make([][]byte, records/batch)
	for i := range clients {
		clients[i] = harness.OwnClient(f.b, 4)
	}
	for i := range batches {
		batches[i] = f.crowd.Batch(batch, 4<<10)
	}

	var next atomic.Int64
	var senders sync.WaitGroup
	server, database := f.used()
	commits, begun := f.commits(), time.Now()
	for range 4 * sidecars {
		senders.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(batches); n = int(next.Add(1)) - 1 {
				harness.PauseFor(time.Until(begun.Add(over * time.Duration(n) / time.Duration(len(batches)))))
				of := n % sidecars
				f.crowd.Send(context.Background(), clients[of], keys[of%len(keys)], batch, batches[n])
			}
		})
	}
	senders.Wait()
	took := time.Since(begun)

	serverAfter, databaseAfter := f.used()
	each := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(records) }
	fmt.Printf("\n%-34s %6.0f records/s, each %.3f ms of the server and %.3f ms of the database, %.0f commits/s",
		name, float64(records)/took.Seconds(), each(serverAfter-server), each(databaseAfter-database),
		float64(f.commits()-commits)/took.Seconds())
}

// idle lets sidecars beat and wait for changes of templates.
func (f *fleet) idle(name string, keys []string, sidecars int) {
	f.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*fleetWindow)
	defer cancel()
	memory := harness.MemoryOf(f.b, f.server, "RssAnon")
	var beats, polls atomic.Int64

	for i := range sidecars {
		client, key := harness.OwnClient(f.b, 2), keys[i%len(keys)]
		go func() {
			beat, _ := json.Marshal(wire.Heartbeat{
				ID: wire.NewID(), Name: fmt.Sprint("sidecar-", i), Version: "1", StartedAt: time.Now(),
			})
			harness.PauseFor(wire.HeartbeatEvery * time.Duration(i) / time.Duration(sidecars))
			for ctx.Err() == nil {
				f.call(ctx, client, key, "POST", "/sync/heartbeat", string(beat), &beats)
				harness.PauseFor(wire.HeartbeatEvery)
			}
		}()
		go func() {
			harness.PauseFor(wire.HeartbeatEvery * time.Duration(i) / time.Duration(sidecars))
			for ctx.Err() == nil {
				begun := time.Now()
				f.call(ctx, client, key, "GET", "/sync/changes?since=0&wait=30s", "", &polls)
				// As a sidecar does whose poll is not held.
				if time.Since(begun) < 15*time.Second {
					harness.PauseFor(time.Second)
				}
			}
		}()
	}

	harness.PauseFor(wire.HeartbeatEvery + 2*time.Second) // until all are here
	server, database := f.used()
	beaten, polled, begun := beats.Load(), polls.Load(), time.Now()
	harness.PauseFor(fleetWindow)
	took := time.Since(begun).Seconds()
	serverAfter, databaseAfter := f.used()

	each := func(d time.Duration) float64 { return d.Seconds() * 1e6 / took / float64(sidecars) }
	fmt.Printf("\n%-34s %d: each second of one takes %.0f us of the server and %.0f us of the database; "+
		"%.0f heartbeats/s, %.0f polls/s, %.0f KiB of the server's memory each",
		name, sidecars, each(serverAfter-server), each(databaseAfter-database),
		float64(beats.Load()-beaten)/took, float64(polls.Load()-polled)/took,
		float64(harness.MemoryOf(f.b, f.server, "RssAnon")-memory)/1024/float64(sidecars))
}

// call adds to count if the server answers 200.
func (f *fleet) call(
	ctx context.Context, client *http.Client, key, method, path, body string, count *atomic.Int64,
) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+f.server.Addr+path, strings.NewReader(body))
	if err != nil {
		f.b.Error(err)
		return
	}
	r.Header.Set("X-API-KEY", key)
	r.Header.Set("Content-Type", "application/json")
	res, err := client.Do(r)
	if err != nil {
		return // what does not come through is not counted
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err == nil && res.StatusCode == 200 {
		count.Add(1)
	}
}
