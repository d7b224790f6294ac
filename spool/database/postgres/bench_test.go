//go:build bench

package postgres_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/metrics/cputimetest"
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

// BenchmarkSessions says how much sessions take whose calls repeat what was said: an hour later, after
// what autovacuum does.
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
	dsn := postgrestest.Start(b, postgrestest.Options{Fsync: true, Settings: benchSettings}).Database(b)
	db := open(b, dsn)
	var first, bodies, files int64
	number(b, dsn, &first, `SELECT pg_database_size(current_database())`)

	packing, wal, walPacking := time.Duration(0), walBytes(b, dsn), int64(0)
	sent := load.Send(b, db, time.Now(), func(s databasetest.Sent) {
		if packing == 0 {
			s.Read(b, db, "alone")
		}
		cpu, written := cputimetest.Used(), walBytes(b, dsn)
		if err := db.PackLater(b.Context(), time.Hour); err != nil {
			b.Fatal(err)
		}
		packing, walPacking = packing+cputimetest.Used()-cpu, walPacking+walBytes(b, dsn)-written
		execute(b, dsn, `VACUUM ANALYZE`)
	})
	of := func(bytes int64) float64 { return float64(bytes) / float64(sent.Bytes) }
	b.Logf("%s: packed in %.2f ms of our processor a MB; WAL %.2f of what was sent, of that %.2f for packing",
		load.Name, packing.Seconds()*1e3/(float64(sent.Bytes)/1e6), of(walBytes(b, dsn)-wal), of(walPacking))

	number(b, dsn, &bodies, `SELECT sum(octet_length(body) + coalesce(octet_length(dependants), 0)) FROM record_bodies`)
	number(b, dsn, &files, `SELECT pg_database_size(current_database())`)
	sent.Read(b, db, "packed")
	sent.Tell(b, load.Name, bodies, files-first)
}

// number reads one number.
func number(b *testing.B, dsn string, n *int64, sql string) {
	conn, err := pgx.Connect(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	if err := conn.QueryRow(b.Context(), sql).Scan(n); err != nil {
		b.Fatal(err)
	}
}
