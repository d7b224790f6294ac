//go:build bench

package badgerdb_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/metrics/cputime"
	"promptspool/registry/prices"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// BenchmarkArchive fills a database and measures the queries that the documentation gives
// figures for. It does both in one run, so that the figures belong together. The
// environment sets its size:
//
// PROMPTSPOOL_BENCH_RECORDS is the number of records: 100,000 by default, 2,000,000 in
// the long form.
//
// PROMPTSPOOL_BENCH_DIR keeps the database from run to run. A long fill can then be done
// in parts, because records that exist are not made again.
//
// PROMPTSPOOL_BENCH_FILL ends a part after this many seconds.
func BenchmarkArchive(b *testing.B) {
	s := newStage(b)
	for range b.N {
		if !s.fill(b) {
			return
		}
		s.restart(b)
		databasetest.Ask(b, s.service, accounts[0], s.calls, benchDays)
		s.tellMemory(b)
	}
}

// BenchmarkSlowCalls fills a database with 200 calls a second that take up to half a minute,
// so that few come in the order of their starts.
func BenchmarkSlowCalls(b *testing.B) {
	s := newStage(b)
	s.calls.Step, s.calls.Slow = 5*time.Millisecond, 30*time.Second
	for range b.N {
		s.fill(b)
	}
}

// benchDays is the number of days over which a benchmark spreads its records.
const benchDays = 10

// stage is the database of a benchmark, with the records to fill it.
type stage struct {
	dir     string
	records int
	calls   *databasetest.Calls
	db      *badgerdb.DB
	service *records.Service
	made    int
	memory  atomic.Int64 // most anonymous memory seen, kB
}

var accounts = []wire.Identity{{Account: "account-a"}, {Account: "account-b"}}

// newStage opens the database that the environment asks for, and watches the memory.
func newStage(b *testing.B) *stage {
	debug.SetMemoryLimit(192 << 20) // as the server does
	s := &stage{records: 100_000, dir: os.Getenv("PROMPTSPOOL_BENCH_DIR")}
	if n, err := strconv.Atoi(os.Getenv("PROMPTSPOOL_BENCH_RECORDS")); err == nil {
		s.records = n
	}
	if s.dir == "" {
		s.dir = b.TempDir()
	}

	// In the long form each account has 100,000 records a day.
	span := benchDays * 24 * time.Hour
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	s.calls = databasetest.NewCalls(b, begin, span/time.Duration(s.records))

	b.Cleanup(s.watch())
	s.open(b)
	b.Cleanup(func() { s.db.Close() })

	return s
}

// benchMemory is how much anonymous memory a server may hold at any moment. The measurement
// includes the records to come, and the text that they are cut from.
const benchMemory = 256 << 20

// watch measures the memory until the function that it returns is called.
func (s *stage) watch() (end func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.Tick(20 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick:
				s.lookAtMemory()
			}
		}
	}()

	return func() { close(stop); <-stopped }
}

// open opens the database and its archive.
func (s *stage) open(b *testing.B) {
	db, err := badgerdb.Open(badgerdb.Config{Dir: s.dir, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	s.db = db
	s.service = records.New(records.Config{
		Prices:  prices.BuiltIn(),
		Store:   db,
		Metrics: metrics.New("server", "bench"),
		Logger:  quiet,
		Now:     func() time.Time { return s.calls.At(s.records).Add(time.Hour) },
	})
}

// fill makes the records that do not exist yet, and reports whether all exist now. Like a
// forwarder, it has four batches under way at a time.
func (s *stage) fill(b *testing.B) bool {
	const batch = 500
	deadline := time.Now().Add(time.Hour)
	if n, err := strconv.Atoi(os.Getenv("PROMPTSPOOL_BENCH_FILL")); err == nil {
		deadline = time.Now().Add(time.Duration(n) * time.Second)
	}

	progress := filepath.Join(s.dir, "bench-progress")
	if text, err := os.ReadFile(progress); err == nil {
		s.made, _ = strconv.Atoi(string(text))
	}

	first, begun, cpu, written := s.made, time.Now(), cputime.Used(), bytesWritten()
	raw := int64(0)
	var mu sync.Mutex

	for s.made < s.records && time.Now().Before(deadline) {
		var wg sync.WaitGroup
		round := min(s.made+20*batch, s.records)
		work := make(chan int)
		for range 4 {
			wg.Go(func() {
				for n := range work {
					var events []wire.Event
					size := 0
					// Batches alternate between the accounts: each is a range of time.
					for i := n; i < min(n+batch, round); i++ {
						for _, e := range s.calls.Events(i) {
							events, size = append(events, e), size+len(e.Body)
						}
					}
					if _, err := s.service.Record(b.Context(), accounts[n/batch%2], events); err != nil {
						b.Error(err)
					}
					mu.Lock()
					raw += int64(size)
					mu.Unlock()
				}
			})
		}

		for n := s.made; n < round; n += batch {
			work <- n
		}
		close(work)
		wg.Wait()
		s.made = round
		_ = os.WriteFile(progress, strconv.AppendInt(nil, int64(s.made), 10), 0o600)
	}

	took := time.Since(begun)
	if s.made > first {
		perSecond := float64(s.made-first) / took.Seconds()
		b.ReportMetric(perSecond, "ingest-records/s")
		n := float64(s.made - first)
		b.ReportMetric(float64((cputime.Used()-cpu).Microseconds())/n, "ingest-cpu-us/record")
		b.ReportMetric(float64(bytesWritten()-written)/n, "ingest-written-B/record")

		payload := filepath.Join(s.dir, "bench-payload")
		if text, err := os.ReadFile(payload); err == nil && first > 0 {
			before, _ := strconv.ParseInt(string(text), 10, 64)
			raw += before
		}
		_ = os.WriteFile(payload, strconv.AppendInt(nil, raw, 10), 0o600)
		_ = os.WriteFile(progress, strconv.AppendInt(nil, int64(s.made), 10), 0o600)
		b.Logf("%d to %d of %d records in %v: %.0f/s",
			first, s.made, s.records, took.Round(time.Second), perSecond)
	}

	s.tellMemory(b)

	return s.made == s.records
}

// restart closes the database and opens it again. So the next queries find this process's
// caches cold.
func (s *stage) restart(b *testing.B) {
	if err := s.db.Close(); err != nil {
		b.Fatal(err)
	}

	text, _ := os.ReadFile(filepath.Join(s.dir, "bench-payload"))
	payload, _ := strconv.ParseInt(string(text), 10, 64)
	disk := int64(0)
	_ = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if info, err := d.Info(); err == nil && !d.IsDir() {
			disk += info.Size()
		}
		return nil
	})

	b.Logf("payload %d MB, on disk %d MB", payload>>20, disk>>20)
	b.ReportMetric(float64(disk)/float64(payload), "disk/payload")

	begun := time.Now()
	s.open(b)
	b.ReportMetric(float64(time.Since(begun).Milliseconds()), "open-ms")
}

// bytesWritten returns how many bytes this process has written to disks, or 0 where the
// system does not report it.
func bytesWritten() (n int64) {
	io, _ := os.ReadFile("/proc/self/io")
	if _, rest, ok := bytes.Cut(io, []byte("\nwrite_bytes: ")); ok {
		_, _ = fmt.Sscan(string(rest), &n)
	}

	return n
}

// lookAtMemory notes the anonymous memory that the process holds now.
func (s *stage) lookAtMemory() {
	status, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := bytes.Cut(status, []byte("RssAnon:")); ok {
		var kb int64
		_, _ = fmt.Sscan(string(rest), &kb)
		s.memory.Store(max(s.memory.Load(), kb))
	}
}

// tellMemory reports the most memory seen, which must be within benchMemory.
func (s *stage) tellMemory(b *testing.B) {
	most := s.memory.Load()
	b.ReportMetric(float64(most)/1024, "MB-anonymous")
	if most<<10 > benchMemory {
		b.Errorf("the process held %d MB of anonymous memory, more than %d", most>>10, benchMemory>>20)
	}
}

// BenchmarkScoresOfOneRecord writes 2,000 scores of one record one by one.
func BenchmarkScoresOfOneRecord(b *testing.B) {
	const events = 2000
	for range b.N {
		db, err := badgerdb.Open(badgerdb.Config{Dir: b.TempDir(), Logger: quiet})
		if err != nil {
			b.Fatal(err)
		}
		begun := bytesWritten()
		databasetest.WriteScores(b, db, events)
		b.ReportMetric(float64(bytesWritten()-begun)/events, "written-B/event")
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
