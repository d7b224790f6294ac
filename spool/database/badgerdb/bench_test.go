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
	"sync/atomic"
	"testing"
	"time"

	"promptspool/metrics/cputimetest"
	"promptspool/registry/prices"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// BenchmarkArchive fills a database and asks it (databasetest.Bench). PROMPTSPOOL_BENCH_DIR keeps
// the database from run to run: records that exist are not made again.
func BenchmarkArchive(b *testing.B) {
	s := newStage(b)
	for range b.N {
		if !s.fill(b) {
			return
		}
		s.restart(b)
		s.Ask(b)
		s.tellMemory(b)
	}
}

// BenchmarkSlowCalls fills a database with 200 calls a second that take up to half a minute,
// so that few come in the order of their starts.
func BenchmarkSlowCalls(b *testing.B) {
	s := newStage(b)
	s.Calls.Step, s.Calls.Slow = 5*time.Millisecond, 30*time.Second
	for range b.N {
		s.fill(b)
	}
}

// BenchmarkAlerts fills a database with 500 calls a second of each account, and says what 100 alerts of one of
// them cost.
func BenchmarkAlerts(b *testing.B) {
	s := newStage(b)
	s.Calls.Step, s.Calls.Short = time.Millisecond, true
	for range b.N {
		if s.fill(b) {
			s.JudgeCost(b, s.db)
		}
	}
}

// stage is the database of a benchmark.
type stage struct {
	*databasetest.Bench
	dir    string
	db     *badgerdb.DB
	memory atomic.Int64 // most anonymous memory seen, kB
}

// newStage opens the database that the environment asks for, and watches the memory.
func newStage(b *testing.B) *stage {
	debug.SetMemoryLimit(192 << 20) // as the server does
	s := &stage{Bench: databasetest.NewBench(b), dir: os.Getenv("PROMPTSPOOL_BENCH_DIR")}
	if s.dir == "" {
		s.dir = b.TempDir()
	}

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
	s.Use(records.Config{Store: db, Prices: prices.BuiltIn()})
}

// number reads and writes a number that is kept beside the database.
func (s *stage) number(name string) (n int64, set func(n int64)) {
	path := filepath.Join(s.dir, name)
	text, _ := os.ReadFile(path)
	n, _ = strconv.ParseInt(string(text), 10, 64)

	return n, func(n int64) { _ = os.WriteFile(path, strconv.AppendInt(nil, n, 10), 0o600) }
}

// fill makes the records that do not exist yet, and reports whether all exist now.
func (s *stage) fill(b *testing.B) bool {
	first, note := s.number("bench-progress")
	before, notePayload := s.number("bench-payload")
	cpu, written := cputimetest.Used(), bytesWritten()

	made, payload := s.Fill(b, int(first), func(made int) { note(int64(made)) })
	if n := float64(made) - float64(first); n > 0 {
		b.ReportMetric(float64((cputimetest.Used()-cpu).Microseconds())/n, "ingest-cpu-us/record")
		b.ReportMetric(float64(bytesWritten()-written)/n, "ingest-written-B/record")
		notePayload(before + payload)
	}
	s.tellMemory(b)

	return made == s.Records
}

// restart closes the database and opens it again. So the next queries find this process's
// caches cold.
func (s *stage) restart(b *testing.B) {
	if err := s.db.Close(); err != nil {
		b.Fatal(err)
	}

	payload, _ := s.number("bench-payload")
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

// memoryGrows returns by how many bytes the anonymous memory of the process grew at most while fn ran,
// with little garbage.
func memoryGrows(fn func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	debug.FreeOSMemory()
	var s stage
	s.lookAtMemory()
	before := s.memory.Load()

	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	for {
		s.lookAtMemory()
		select {
		case <-done:
			return (s.memory.Load() - before) << 10
		case <-time.After(time.Millisecond):
		}
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

// BenchmarkSessions says how much sessions take whose calls repeat what was said: an hour later, once
// the database was maintained as it always is.
func BenchmarkSessions(b *testing.B) {
	for _, load := range databasetest.SessionLoads() {
		b.Run(load.Name, func(b *testing.B) {
			for range b.N {
				benchSession(b, &load)
			}
		})
	}
}

func benchSession(b *testing.B, load *databasetest.SessionLoad) {
	dir := b.TempDir()
	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()

	packing, begun, writtenPacking, memory := time.Duration(0), bytesWritten(), int64(0), int64(0)
	sent := load.Send(b, db, time.Now(), func(s databasetest.Sent) {
		if packing == 0 {
			s.Read(b, db, "alone")
		}
		cpu, written := cputimetest.Used(), bytesWritten()
		memory = max(memory, memoryGrows(func() {
			if err := db.PackLater(b.Context(), time.Hour); err != nil {
				b.Error(err)
			}
		}))
		packing += cputimetest.Used() - cpu
		db.Tidy(b.Context())
		writtenPacking += bytesWritten() - written
	})
	of := func(bytes int64) float64 { return float64(bytes) / float64(sent.Bytes) }
	b.Logf("%s: packed in %.2f ms of processor a MB, with %d MB more memory; "+
		"written %.2f of what was sent, of that %.2f for packing",
		load.Name, packing.Seconds()*1e3/(float64(sent.Bytes)/1e6), memory>>20,
		of(bytesWritten()-begun), of(writtenPacking))
	size, err := db.Size(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	sent.Read(b, db, "packed")
	sent.Tell(b, load.Name, db.BodyBytes(), size.DiskBytes)
}
