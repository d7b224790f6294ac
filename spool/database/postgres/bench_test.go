//go:build bench

package postgres_test

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/registry/prices"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

// BenchmarkArchive fills a database and asks it what the documentation promises, in one run, so
// that the figures belong together. PostgreSQL runs on the same machine and waits for its disk.
//
//   - PROMPTSPOOL_BENCH_RECORDS is the number of records: 100,000 by default, 2,000,000 in the
//     long form.
//   - PROMPTSPOOL_BENCH_DSN names a database that is kept from run to run. A long fill may then
//     be done in parts: records that exist are not made again.
//   - PROMPTSPOOL_BENCH_FILL ends a part after so many seconds.
func BenchmarkArchive(b *testing.B) {
	s := newStage(b)
	for range b.N {
		if !s.fill(b) {
			return
		}
		s.settle(b)
		databasetest.Ask(b, s.service, accounts[0], s.calls, benchDays)
	}
}

// benchDays is the number of days over which the records of a benchmark are spread.
const benchDays = 10

type stage struct {
	records int
	calls   *databasetest.Calls
	dsn     string
	db      *postgres.DB
	service *records.Service
}

var accounts = []wire.Identity{{Account: "account-a"}, {Account: "account-b"}}

// benchSettings are those of a server with 8 GB: a quarter of it for its cache, and checkpoints
// that are rare.
var benchSettings = []string{
	"shared_buffers=2GB",
	"max_wal_size=4GB",
	"checkpoint_timeout=15min",
	"autovacuum_naptime=20s",
	"wal_compression=off",
}

func newStage(b *testing.B) *stage {
	s := &stage{records: 100_000, dsn: os.Getenv("PROMPTSPOOL_BENCH_DSN")}
	if n, err := strconv.Atoi(os.Getenv("PROMPTSPOOL_BENCH_RECORDS")); err == nil {
		s.records = n
	}
	if s.dsn == "" {
		s.dsn = postgrestest.Start(b, postgrestest.Options{Fsync: true, Settings: benchSettings}).Database(b)
	}

	// In the long form each account has 100,000 records a day.
	span := benchDays * 24 * time.Hour
	s.calls = databasetest.NewCalls(b, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), span/time.Duration(s.records))
	s.db = open(b, s.dsn)
	s.service = records.New(records.Config{
		Prices:  prices.BuiltIn(),
		Store:   s.db,
		Metrics: metrics.New("server", "bench"),
		Logger:  quiet,
		Now:     func() time.Time { return s.calls.At(s.records).Add(time.Hour) },
	})

	return s
}

// fill makes the missing records, with four batches at a time, as a forwarder does. It reports
// whether all exist.
func (s *stage) fill(b *testing.B) bool {
	const batch, round = 500, 20 * 500
	size, err := s.db.Size(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	first := int(size.Records) / round * round // an incomplete round is made again, and changes nothing
	made, begun := first, time.Now()

	deadline := begun.Add(time.Hour)
	if n, err := strconv.Atoi(os.Getenv("PROMPTSPOOL_BENCH_FILL")); err == nil {
		deadline = begun.Add(time.Duration(n) * time.Second)
	}

	for made < s.records && time.Now().Before(deadline) {
		var wg sync.WaitGroup
		end := min(made+round, s.records)
		work := make(chan int)
		for range 4 {
			wg.Go(func() {
				for n := range work {
					var events []wire.Event
					// Batches alternate between the accounts: each is a range of time.
					for i := n; i < min(n+batch, end); i++ {
						events = append(events, s.calls.Events(i)...)
					}
					if _, err := s.service.Record(b.Context(), accounts[n/batch%2], events); err != nil {
						b.Error(err)
					}
				}
			})
		}

		for n := made; n < end; n += batch {
			work <- n
		}
		close(work)
		wg.Wait()
		made = end
	}

	if took := time.Since(begun); made > first {
		b.ReportMetric(float64(made-first)/took.Seconds(), "ingest-records/s")
		b.Logf("%d to %d of %d records in %v: %.0f/s",
			first, made, s.records, took.Round(time.Second), float64(made-first)/took.Seconds())
	}

	return made == s.records
}

// settle does what autovacuum and the server's maintenance do within minutes. It reports the
// size of the database.
func (s *stage) settle(b *testing.B) {
	conn, err := pgx.Connect(b.Context(), s.dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())

	begun := time.Now()
	if err := s.db.Summarize(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Logf("summaries made in %v", time.Since(begun).Round(time.Millisecond))

	begun = time.Now()
	// By name, because without one Citus leaves out the shards.
	for _, table := range []string{"record_states", "records", "record_bodies", "account_weeks", "summaries"} {
		if _, err := conn.Exec(b.Context(), "VACUUM ANALYZE "+table); err != nil {
			b.Fatal(err)
		}
	}
	size, err := s.db.Size(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("settled in %v; payload %d MB, on disk %d MB",
		time.Since(begun).Round(time.Millisecond), size.Bytes>>20, size.DiskBytes>>20)
	b.ReportMetric(float64(size.DiskBytes)/float64(size.Bytes), "disk/payload")
}

// BenchmarkScoresOfOneRecord writes 2,000 scores of one record one by one.
func BenchmarkScoresOfOneRecord(b *testing.B) {
	const events = 2000
	for range b.N {
		dsn := postgrestest.Start(b, postgrestest.Options{Settings: benchSettings}).Database(b)
		db := open(b, dsn)
		begun := walBytes(b, dsn)
		databasetest.WriteScores(b, db, events)
		b.ReportMetric(float64(walBytes(b, dsn)-begun)/events, "WAL-B/event")
	}
}
