//go:build linux && bench

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"promptspool/api/auth"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics"
	"promptspool/registry/prices"
	"promptspool/spool/archive"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

// textKind is a kind of search, of which each is made with textWords different words.
type textKind struct {
	name  string
	line  func(k int) string
	most  time.Duration // promised p95 on Badger, 0 without a promise
	whole bool          // the answer must be complete
	found int           // at least
}

// textWords is how many words there are of each kind.
const textWords = 40

// markedText is what the answer of a record has for searches besides its English text: for each k of
// textWords a word in each 100,000th record at the tail and one at the head, one in each 1,000th before
// common words, and one in each hundredth; and a code token, and an id.
func markedText(n int) (head, tail string) {
	head = fmt.Sprintf("run_%d.py", n)
	if k := n % 100_000; k%2000 == 7 && k/2000 < textWords {
		head = fmt.Sprintf("firsts%d %s", k/2000, head)
	}
	if k := n % 1000; k%25 == 3 {
		tail += fmt.Sprintf("the thousandth%d of the records ", k/25)
	}
	if k := n % 100; k < textWords {
		tail += fmt.Sprintf("hundredth%d ", k)
	}
	tail += textID(n)
	if k := n % 100_000; k%2000 == 1007 && k/2000 < textWords {
		tail += fmt.Sprintf(" lasts%d", k/2000)
	}
	return head, tail
}

// textID is an id in a text.
func textID(n int) string { return fmt.Sprintf("req_%016x", uint64(n+1)*0x9e3779b97f4a7c15) }

// commonWords are phrases of which each word stands in many records.
var commonWords = []string{
	"of the", "is not", "the first", "in the same", "if the", "with the given", "returns the number",
	"reports whether the", "must be", "for example",
}

func textKinds(records int) []textKind {
	one := func(format string) func(int) string { return func(k int) string { return fmt.Sprintf(format, k) } }
	return []textKind{
		{"a word of one record in 100,000", one("lasts%d"), 100 * time.Millisecond, true, records / 100_000},
		{"such a word at the head", one("firsts%d"), 100 * time.Millisecond, true, records / 100_000},
		{"an id", func(k int) string { return textID(records / textWords * k) }, 100 * time.Millisecond, true, 1},
		{"a token of code", func(k int) string { return fmt.Sprintf("run_%d.py", records/textWords*k) },
			100 * time.Millisecond, true, 1},
		{"a word that nobody has", one("nowhere%d"), 30 * time.Millisecond, true, 0},
		{"a word of 1 %", one("hundredth%d"), 50 * time.Millisecond, false, records / 100},
		{"a phrase, one word in 1,000", one(`"thousandth%d of the"`), 300 * time.Millisecond, false, records / 1000},
		{"the same within output:", one(`output:"thousandth%d of the"`), 300 * time.Millisecond, false, records / 1000},
		{"a phrase of common words", func(k int) string { return strconv.Quote(commonWords[k%len(commonWords)]) },
			0, false, 50},
		{"two common words, one not", func(k int) string { return commonWords[k%len(commonWords)] + " -goroutine" },
			0, false, 50},
	}
}

// BenchmarkTextSearch asks a real server for words in 2,000,000 records of 4 KB, or
// PROMPTSPOOL_BENCH_RECORDS: English, code and ids. It prints the times beside the floor, a page that
// looks for nothing, and beside the scan that answers for parts of words: cold, right after a start with
// nothing in the system's cache, and warm, when the same is asked again.
// PROMPTSPOOL_BENCH_DATABASE=postgres does so on PostgreSQL.
func BenchmarkTextSearch(b *testing.B) {
	for range b.N {
		s := newTextStage(b)
		kinds := append([]textKind{{"floor: the newest page", func(int) string { return "" }, 0, true, 50}},
			textKinds(s.records)...)
		fmt.Printf("\n%d records; answers of %d searches each\n%-34s %9s %9s %9s %9s %9s\n", s.records, textWords,
			"looked for", "cold p95", "median", "p95", "max", "complete")
		slow := 0
		for _, kind := range kinds {
			s.forget(b)
			cold := s.ask(b, kind, textWords)
			warm := s.ask(b, kind, textWords)
			said := ""
			if limit := kind.most * time.Duration(s.times); kind.most > 0 && warm.p95 > limit {
				said = fmt.Sprintf("  SLOW: at most %s", limit)
				slow++
			}
			fmt.Printf("%-34s %9s %9s %9s %9s %6d/%d%s\n", kind.name, harness.Rounded(cold.p95),
				harness.Rounded(warm.median), harness.Rounded(warm.p95), harness.Rounded(warm.max),
				warm.complete, textWords, said)
		}
		scan := s.ask(b, textKind{"scan", func(k int) string { return fmt.Sprintf("*asts%d*", k) }, 0, false, 0}, 3)
		fmt.Printf("%-34s %9s %9s %9s %9s %6d/%d\n", "floor: without the index", "", harness.Rounded(scan.median),
			harness.Rounded(scan.p95), harness.Rounded(scan.max), scan.complete, 3)
		b.ReportMetric(float64(slow), "slow")

		s.write(b)
		fmt.Printf("the server's own memory, at most: %d MB\n", s.most()>>20)
	}
}

// textStage is a server with many texts.
type textStage struct {
	records int
	times   int // what is promised for Badger may take as many times as long
	calls   *databasetest.Calls
	data    string
	program string
	server  *harness.Node
	env     []string
	most    func() int64
}

func newTextStage(b *testing.B) *textStage {
	b.Helper()
	s := &textStage{records: 2_000_000, times: 1, data: b.TempDir()}
	if n, err := strconv.Atoi(os.Getenv("PROMPTSPOOL_BENCH_RECORDS")); err == nil {
		s.records = n
	}
	span := 20 * 24 * time.Hour
	s.calls = databasetest.NewCalls(b, time.Now().Add(-span).Truncate(time.Second), span/time.Duration(s.records))
	s.calls.Marked = markedText

	if os.Getenv("PROMPTSPOOL_BENCH_DATABASE") == "postgres" {
		dsn := postgrestest.DSN(b)
		s.times, s.env = 10, []string{"PROMPTSPOOL_ARCHIVE=" + dsn}
		db, err := postgres.Open(b.Context(), postgres.Config{DSN: dsn, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		s.fill(b, db)
		begun := time.Now()
		if err := db.IndexTexts(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.Logf("indexed in %s", time.Since(begun).Round(time.Second))
		db.Close()
	} else {
		dir := filepath.Join(s.data, "archive")
		db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		payload := s.fill(b, db)
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		words := tableBytes(b, dir, 'w')
		b.Logf("the index has %d MB, %.1f %% of a payload of %d MB; the folder has %d MB", words>>20,
			100*float64(words)/float64(payload), payload>>20, harness.Occupied(b, dir)>>20)
	}

	s.start(b)
	return s
}

// textStore is what the stage needs of a database.
type textStore interface {
	archive.Store
	auth.Store
}

// fill writes the records and returns the bytes of their bodies.
func (s *textStage) fill(b *testing.B, db textStore) (payload int64) {
	b.Helper()
	key, err := auth.New(auth.Config{Store: db}).Bootstrap(b.Context(), harness.AdminKey)
	if err != nil {
		b.Fatal(err)
	}
	a := records.New(records.Config{
		Store:   db,
		Prices:  prices.BuiltIn(),
		Metrics: metrics.New("server", "bench"),
		Logger:  slog.New(slog.DiscardHandler),
	})

	const batch = 500
	begun := time.Now()
	var mu sync.Mutex
	for from := 0; from < s.records; from += 20 * batch {
		to := min(from+20*batch, s.records)
		var work sync.WaitGroup
		for part := from; part < to; part += batch {
			work.Go(func() {
				var events []wire.Event
				size := 0
				for n := part; n < min(part+batch, to); n++ {
					events = append(events, s.calls.Events(n)...)
				}
				for i := range events {
					size += len(events[i].Body)
				}
				if _, err := a.Record(context.Background(), wire.Identity{Account: key.AccountID}, events); err != nil {
					b.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				payload += int64(size)
			})
		}
		work.Wait()
	}
	b.Logf("%d records of %d bytes made at %.0f/s", s.records, payload/int64(s.records),
		float64(s.records)/time.Since(begun).Seconds())
	return payload
}

// tableBytes returns the bytes that a table of all accounts takes, keys and values.
func tableBytes(b *testing.B, dir string, table byte) (size int64) {
	b.Helper()
	db, err := badger.Open(badger.DefaultOptions(dir).WithReadOnly(true).WithLogger(nil))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{1}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			// An account's keys: 1, the length of its id, the id, the table.
			if key := it.Item().Key(); key[2+int(key[1])] == table {
				size += it.Item().EstimatedSize()
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}

func (s *textStage) start(b *testing.B) {
	b.Helper()
	var err error
	if s.program, err = harness.PlainBinary(); err != nil {
		b.Fatal(err)
	}
	s.server = harness.Begin(b, s.program, s.env, s.data, harness.FreePort(b), "server")
	if !s.server.Takes() {
		b.Fatal("the server does not start")
	}
	before := func() int64 { return 0 }
	if s.most != nil {
		before = s.most
	}
	now := harness.WatchMemory(b, s.server)
	peak := before()
	s.most = func() int64 { return max(peak, now()) }
}

// forget starts the server again, with none of the database in the system's cache.
func (s *textStage) forget(b *testing.B) {
	b.Helper()
	peak := s.most()
	s.server.Kill()
	err := filepath.WalkDir(s.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		unix.Fsync(int(f.Fd()))
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
	if err != nil {
		b.Fatal(err)
	}
	s.most = func() int64 { return peak }
	s.start(b)
}

type textFigures struct {
	median, p95, max time.Duration
	complete         int
}

// ask searches for words of a kind.
func (s *textStage) ask(b *testing.B, kind textKind, times int) (f textFigures) {
	b.Helper()
	var took []time.Duration
	for k := range times {
		body, _ := json.Marshal(map[string]any{"filter": kind.line(k), "per_page": 50})
		search := func() harness.Reply {
			return s.server.Call("POST", "/api/public/v2/requests/search", string(body), "X-API-KEY", harness.AdminKey)
		}
		begun := time.Now()
		r := search()
		took = append(took, time.Since(begun))
		items, _ := r.JSON["items"].([]any)
		complete, _ := r.JSON["complete"].(bool)
		if r.Status != 200 || len(items) < min(kind.found, 50) || kind.whole && !complete {
			again := search()
			s.server.Kill()
			check, _ := exec.Command(s.program, "archive", "check", "--data", s.data).CombinedOutput()
			b.Fatalf("%s: %s: %d, %d found, complete %t\n%s\nagain:\n%s\n%s", kind.name, kind.line(k), r.Status,
				len(items), complete, r.Body, again.Body, check)
		}
		if complete {
			f.complete++
		}
	}

	slices.Sort(took)
	f.median, f.p95, f.max = took[len(took)/2], took[(len(took)*95+99)/100-1], took[len(took)-1]
	return f
}

// write logs calls while others search, for the memory that both take.
func (s *textStage) write(b *testing.B) {
	b.Helper()
	const calls = 20_000
	var work sync.WaitGroup
	for w := range 4 {
		work.Go(func() {
			for n := w; n < calls; n += 4 {
				events := s.calls.Events(s.records + n)
				r := s.server.Call("POST", "/rest/track-request", string(events[0].Body), "X-API-KEY", harness.AdminKey)
				if r.Status != 200 {
					b.Errorf("a call is not logged: %d %.200s", r.Status, r.Body)
					return
				}
			}
		})
	}
	work.Go(func() {
		for _, kind := range textKinds(s.records) {
			s.ask(b, kind, textWords/2)
		}
	})
	work.Wait()
	logged := func(k int) string { return textID(s.records + k) }
	found := s.ask(b, textKind{"what was just logged", logged, 0, true, 1}, 10)
	fmt.Printf("%-34s %9s %9s %9s %9s\n", "an id that was just logged", "", harness.Rounded(found.median),
		harness.Rounded(found.p95), harness.Rounded(found.max))
}
