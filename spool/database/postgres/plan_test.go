//go:build !race

package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

var update = flag.Bool("update", false, "write the goldens anew")

// planned is a database of some weeks. Its server logs the plan of each statement
// (auto_explain).
type planned struct {
	server  *postgrestest.Server
	version string // of PostgreSQL, such as 150012
	db      *postgres.DB
}

var planBegin = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

const (
	planWeeks   = 5
	planRecords = 6_000
)

// at returns when the nth record is accepted.
func (planned) at(n int) time.Time {
	return planBegin.Add(time.Duration(n) * (planWeeks * week / planRecords))
}

// event returns the nth record, with the fields that the lists filter by.
func (p planned) event(t testing.TB, n int) archive.Event {
	noise := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	filling := make([]byte, 600) // about the size of a compressed call
	_, _ = noise.Read(filling)
	body := fmt.Sprintf(`{"function_name":"f","kwargs":{"messages":[{"role":"user","content":"the %d %x"}]},`+
		`"tags":["tag-%d"],"metadata":{"user":"user-%d","session":"%x"},`+
		`"prompt_id":"template-%d","prompt_version":%d}`,
		n, filling, n%50, n%211, n*7919, n%20, n/20%10+1)

	return eventAt(t, p.at(n), wire.KindRequest, idAt(p.at(n), n), n, body)
}

func newPlanned(t *testing.T) planned {
	p := planned{server: postgrestest.Start(t, postgrestest.Options{Settings: []string{
		"shared_preload_libraries=auto_explain",
		"auto_explain.log_min_duration=-1",
		"autovacuum=off",
		"random_page_cost=1.1", // of a disk without heads, where 25 records by key beat a table this small
		"jit=off",
		"max_parallel_workers_per_gather=0",
	}})}

	dsn := p.server.Database(t)
	row := postgrestest.Connect(t, dsn).QueryRow(context.Background(), `SHOW server_version_num`)
	if err := row.Scan(&p.version); err != nil {
		t.Fatal(err)
	}
	p.db = open(t, dsn)
	for n := 0; n < planRecords; n += 500 {
		var events []archive.Event
		for i := n; i < n+500; i++ {
			events = append(events, planned{}.event(t, i))
		}
		apply(t, p.db, events...)
	}
	if err := p.db.Summarize(context.Background()); err != nil {
		t.Fatal(err)
	}
	execute(t, dsn, "VACUUM ANALYZE")

	// From here on new connections log every statement with its plan.
	execute(t, dsn, "ALTER ROLE postgres SET auto_explain.log_min_duration = 0")
	p.db = open(t, dsn)

	return p
}

// plans returns the plans of the statements that do sends, in their order, without what changes
// from run to run.
func (p planned) plans(t *testing.T, do func()) string {
	t.Helper()
	begin := len(p.server.WholeLog(t))
	do()

	var all []string
	for _, entry := range strings.Split(p.server.WholeLog(t)[begin:], " LOG:  duration: ")[1:] {
		_, plan, ok := strings.Cut(entry, "plan:\n")
		if !ok {
			continue
		}

		// The statement itself, of one line or several, comes first: the plan begins with the
		// first costs.
		var lines []string
		begun := false
		for _, line := range strings.Split(plan, "\n") {
			if begun = begun || costs.MatchString(line); !begun || !strings.HasPrefix(line, "\t") {
				continue
			}
			line = changing.ReplaceAllString(costs.ReplaceAllString(line, ""), "?")
			lines = append(lines, strings.TrimPrefix(line, "\t"))
		}
		all = append(all, strings.Join(lines, "\n"))
	}

	return strings.Join(all, "\n--\n") + "\n"
}

var (
	costs = regexp.MustCompile(`  \(cost=[^)]*\)`)
	// Terms are hashes, and order times are those of the records. A statement that was sent
	// often is planned without its values.
	changing = regexp.MustCompile(`'\{[^}]*\}'::(bigint|uuid)\[\]|'[0-9-]{16,}'::bigint|'account-a'::text|\$\d+`)

	sequential = regexp.MustCompile(`Seq Scan on (records|record_states|record_deltas|record_bodies)\S*`)
	partition  = regexp.MustCompile(`on (records\S+)`)
)

func TestReadingAWholeTableIsNoticed(t *testing.T) {
	if !sequential.MatchString("        ->  Seq Scan on records_w20260302 records_1") ||
		sequential.MatchString("Seq Scan on account_weeks") {
		t.Error("the goldens would not notice a sequential scan")
	}
}

func TestHowListsAreFound(t *testing.T) {
	p := newPlanned(t)
	a := func(s wire.Search) func() {
		return func() {
			t.Helper()
			s.PerPage = 25
			q, err := query.Compile(s)
			if err != nil {
				t.Fatal(err)
			}
			page, err := p.db.Search(context.Background(), account, q)
			if err != nil || len(page.Rows) == 0 {
				t.Fatalf("%d rows, %v", len(page.Rows), err)
			}
		}
	}
	by := func(f ...wire.Filter) wire.Search { return wire.Search{FilterGroup: &wire.Filter{Filters: f}} }

	from := planBegin.Add(24 * 24 * time.Hour)
	day := []wire.Filter{
		databasetest.Condition("list_time", "", "gte", from),
		databasetest.Condition("list_time", "", "lt", from.Add(24*time.Hour)),
	}

	for _, c := range []struct {
		name  string
		weeks int // that it may read, at most
		ask   func()
	}{
		{"newest page", 1, a(wire.Search{})},
		{"a day", 1, a(by(day...))},
		{"a tag within a day", 1, a(by(append(day, databasetest.Condition("tags", "", "is", "tag-7"))...))},
		{"words within a day", 1, a(by(append(day, databasetest.Condition("text", "", "matches", "the"))...))},
		{"a part of a tag within a day", 1,
			a(by(append(day, databasetest.Condition("tags", "", "contains", "ag-7"))...))},
		// These count all matches, and so look at all weeks, by the index of each partition.
		{"a tag", planWeeks, a(by(databasetest.Condition("tags", "", "is", "tag-7")))},
		{"a metadata value", planWeeks, a(by(databasetest.Condition("metadata", "user", "is", "user-7")))},
		{"a version of a template", planWeeks, a(by(
			databasetest.Condition("prompt_name", "", "is", "template-3"),
			databasetest.Condition("prompt_version_number", "", "eq", 2),
		))},
		{"requests by their ids", 2, a(by(
			databasetest.Condition("request_id", "", "in", []string{idAt(p.at(10), 10), idAt(p.at(5000), 5000)}),
		))},
		{"one record", 0, func() {
			if _, _, err := p.db.Record(context.Background(), account, idAt(p.at(3000), 3000)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			plans := p.plans(t, c.ask)
			if found := sequential.FindAllString(plans, -1); found != nil {
				t.Errorf("it reads whole tables: %q", found)
			}

			indexes := strings.NewReplacer("_account_id_at_request_id_ts_idx", "", "_pkey", "", "_terms_idx", "")
			weeks := map[string]bool{}
			for _, m := range partition.FindAllStringSubmatch(plans, -1) {
				name := indexes.Replace(m[1])
				if strings.HasPrefix(name, "records_w") {
					weeks[name] = true
				}
			}
			if len(weeks) > c.weeks {
				t.Errorf("it looks at %d weeks, want at most %d: %v", len(weeks), c.weeks, weeks)
			}

			// Later versions sort less and put more into the conditions of an index.
			if strings.HasPrefix(p.version, "15") {
				golden(t, c.name, plans)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "plans", strings.ReplaceAll(name, " ", "_")+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(fmt.Errorf("%w; make it with -update", err))
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the plans (-want +got), accept them with -update:\n%s", diff)
	}
}
