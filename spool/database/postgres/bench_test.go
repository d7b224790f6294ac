//go:build bench

package postgres_test

import (
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/registry/prices"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

// BenchmarkArchive fills a database and asks it (databasetest.Bench). PostgreSQL runs on the same
// machine and waits for its disk. PROMPTSPOOL_BENCH_DSN names a database that is kept from run to
// run: records that exist are not made again.
func BenchmarkArchive(b *testing.B) {
	s := newStage(b)
	for range b.N {
		if !s.fill(b) {
			return
		}
		s.settle(b)
		s.Ask(b)
	}
}

type stage struct {
	*databasetest.Bench
	dsn string
	db  *postgres.DB
}

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
	s := &stage{Bench: databasetest.NewBench(b), dsn: os.Getenv("PROMPTSPOOL_BENCH_DSN")}
	if s.dsn == "" {
		s.dsn = postgrestest.Start(b, postgrestest.Options{Fsync: true, Settings: benchSettings}).Database(b)
	}
	s.db = open(b, s.dsn)
	s.Use(records.Config{Store: s.db, Prices: prices.BuiltIn()})

	return s
}

// fill makes the missing records, and reports whether all exist.
func (s *stage) fill(b *testing.B) bool {
	size, err := s.db.Size(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	made, _ := s.Fill(b, int(size.Records), func(int) {})

	return made == s.Records
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
