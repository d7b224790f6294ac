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
	"syscall"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/archivetest"
	"promptspool/spool/archive/badgerdb"
)

// BenchmarkArchive fills a database and asks it what the documentation promises, in one run so that the figures belong together.
// PROMPTSPOOL_BENCH_RECORDS says how many records (100,000 by default, 2,000,000 is the long form), PROMPTSPOOL_BENCH_DIR
// where the database is kept from run to run, so that a long fill may be done in parts: what is there is not made again;
// PROMPTSPOOL_BENCH_FILL stops a part after so many seconds.
func BenchmarkArchive(b *testing.B) {
	s := newStage(b)
	for range b.N {
		if !s.fill(b) {
			return
		}
		s.restart(b)
		archivetest.Ask(b, s.archive, accounts[0], s.calls, benchDays)
		s.tellMemory(b)
	}
}

// benchDays is over how many days the records of a benchmark are spread.
const benchDays = 10

type stage struct {
	dir     string
	records int
	calls   *archivetest.Calls
	db      *badgerdb.DB
	archive *archive.Archive
	made    int
	memory  atomic.Int64 // most anonymous memory seen, kB
}

var accounts = []wire.Identity{{Account: "account-a"}, {Account: "account-b"}}

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
	s.calls = archivetest.NewCalls(b, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), span/time.Duration(s.records))
	b.Cleanup(s.watch())
	s.open(b)
	b.Cleanup(func() { s.db.Close() })
	return s
}

// benchMemory is what a server may hold of anonymous memory at any moment. The records to come and the text that they are cut from are
// in what is measured.
const benchMemory = 256 << 20

// watch looks at the memory until the function that it returns is called.
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

func (s *stage) open(b *testing.B) {
	db, err := badgerdb.Open(badgerdb.Config{Dir: s.dir, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	s.db = db
	s.archive = archive.New(archive.Config{Store: db, Metrics: metrics.New("server", "bench"), Logger: quiet,
		Now: func() time.Time { return s.calls.At(s.records).Add(time.Hour) }})
}

// fill makes the records that are not there yet, with four batches on their way as a forwarder has, and says whether all are there.
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
	first, begun, cpu, written := s.made, time.Now(), cpuTime(), bytesWritten()
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
					// Batches alternate between the accounts: each is a stretch of time.
					for i := n; i < min(n+batch, round); i++ {
						for _, e := range s.calls.Events(i) {
							events, size = append(events, e), size+len(e.Body)
						}
					}
					if _, err := s.archive.Record(b.Context(), accounts[n/batch%2], events); err != nil {
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
		b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/n, "ingest-cpu-us/record")
		b.ReportMetric(float64(bytesWritten()-written)/n, "ingest-written-B/record")
		payload := filepath.Join(s.dir, "bench-payload")
		if text, err := os.ReadFile(payload); err == nil && first > 0 {
			before, _ := strconv.ParseInt(string(text), 10, 64)
			raw += before
		}
		_ = os.WriteFile(payload, strconv.AppendInt(nil, raw, 10), 0o600)
		_ = os.WriteFile(progress, strconv.AppendInt(nil, int64(s.made), 10), 0o600)
		b.Logf("%d to %d of %d records in %v: %.0f/s", first, s.made, s.records, took.Round(time.Second), perSecond)
	}
	s.tellMemory(b)
	return s.made == s.records
}

// restart closes the database and opens it again: what is asked next is asked cold, as far as this process goes.
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

// cpuTime is what this process has had of the processors, collecting garbage and compacting included: on a machine that is
// shared it tells more than the clock. The making of the records is in it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bytesWritten are those that this process has had written to disks; 0 where the system does not tell.
func bytesWritten() (n int64) {
	io, _ := os.ReadFile("/proc/self/io")
	if _, rest, ok := bytes.Cut(io, []byte("\nwrite_bytes: ")); ok {
		_, _ = fmt.Sscan(string(rest), &n)
	}
	return n
}

func (s *stage) lookAtMemory() {
	status, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := bytes.Cut(status, []byte("RssAnon:")); ok {
		var kb int64
		_, _ = fmt.Sscan(string(rest), &kb)
		s.memory.Store(max(s.memory.Load(), kb))
	}
}

func (s *stage) tellMemory(b *testing.B) {
	most := s.memory.Load()
	b.ReportMetric(float64(most)/1024, "MB-anonymous")
	if most<<10 > benchMemory {
		b.Errorf("the process held %d MB of anonymous memory, more than %d", most>>10, benchMemory>>20)
	}
}
