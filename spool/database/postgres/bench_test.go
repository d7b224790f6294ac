//go:build bench

package postgres_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/registry/prices"
	"promptspool/spool/archive"
	"promptspool/spool/archive/records"
	"promptspool/spool/archive/rollup"
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
	for _, table := range []string{
		"record_states", "records", "record_bodies", "rollup_totals", "account_weeks", "summaries",
	} {
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

// BenchmarkLists measures pages of 200,000 sessions and traces, and of 40,000 users, by any fact and
// with conditions. The roll-ups are made by SQL: the records that they would be of take an hour.
func BenchmarkLists(b *testing.B) {
	s := newStage(b)
	first := requestAt(b, time.Now(), 1) // makes the partition of the week
	if _, err := s.db.Apply(b.Context(), "lists", []archive.Event{first}); err != nil {
		b.Fatal(err)
	}
	for _, kind := range []string{"0, 'session-' || n / 10", "1, md5((n / 10)::text)", "2, 'user-' || n / 10 % 40000"} {
		execute(b, s.dsn, `
			INSERT INTO rollups SELECT 'lists', `+kind+`,
				date_trunc('week', now() AT TIME ZONE 'utc') AT TIME ZONE 'utc',
				min(1000000::bigint * n), max(1000000::bigint * n + n), count(*), 0, sum(n % 977), 900,
				sum(n % 91), sum((n % 50 = 0)::int), sum((n % 7 = 0)::int), sum(n % 11)
			FROM generate_series(1, 2000000) n GROUP BY 3 ORDER BY 5 ON CONFLICT DO NOTHING`)
	}
	execute(b, s.dsn, `INSERT INTO rollup_totals SELECT account_id, kind, name, first_at, last_at, turns, spans,
		cost, input_tokens, output_tokens, errors, scores, score_sum
		FROM rollups ORDER BY first_at ON CONFLICT DO NOTHING`)
	execute(b, s.dsn, `VACUUM ANALYZE rollup_totals`)

	for range b.N {
		for kind, of := range []string{"sessions", "traces", "users"} {
			for i := range rollup.Facts {
				fact := &rollup.Facts[i]
				q := rollup.Query{Kind: rollup.Kind(kind), Sort: fact, Limit: 50}
				measureLists(b, s.db, of+" by "+fact.Name, q)
				if fact.Name == "last_seen" {
					q.Where = []rollup.Condition{{Fact: rollup.FactOf("cost"), From: 3000, To: 1 << 60}}
					measureLists(b, s.db, of+" with a cost", q)
					q.Where, q.Like = nil, "77"
					measureLists(b, s.db, of+" with a part of the name", q)
				}
			}
		}
	}
}

func measureLists(b *testing.B, db *postgres.DB, name string, q rollup.Query) {
	var took []time.Duration
	for range 20 {
		begun := time.Now()
		page, err := db.Rollups(b.Context(), "lists", q)
		if err != nil || len(page.Entries) == 0 {
			b.Fatal(name, page, err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	fmt.Printf("%-34s median %4d ms, p95 %4d ms\n", name, took[10].Milliseconds(), took[18].Milliseconds())
}
