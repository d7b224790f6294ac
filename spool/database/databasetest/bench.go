package databasetest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/metrics/cputimetest"
	"promptspool/spool/archive"
	"promptspool/spool/archive/records"
)

// benchDays is the number of days over which a benchmark spreads its records.
const benchDays = 10

// benchRound is how many records are made between two looks at the clock.
const benchRound = 20 * 500

var benchAccounts = []wire.Identity{{Account: "account-a"}, {Account: "account-b"}}

// Bench is an archive that a benchmark fills and asks.
//
// It does both in one run, so that the figures, which the documentation gives, belong together.
// The environment sets its size:
//
//   - PROMPTSPOOL_BENCH_RECORDS is the number of records: 100,000 by default, 2,000,000 in the
//     long form.
//   - PROMPTSPOOL_BENCH_FILL ends a part of a fill after so many seconds. Where the database is
//     kept from run to run, a long fill is done in parts.
type Bench struct {
	Records int
	Calls   *Calls
	service *records.Service
}

// NewBench returns the Bench that the environment asks for.
func NewBench(b *testing.B) *Bench {
	s := &Bench{Records: 100_000}
	if n, err := strconv.Atoi(os.Getenv("PROMPTSPOOL_BENCH_RECORDS")); err == nil {
		s.Records = n
	}

	// In the long form each account has 100,000 records a day.
	span := benchDays * 24 * time.Hour
	s.Calls = NewCalls(b, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), span/time.Duration(s.Records))

	return s
}

// Use makes an archive with this store and these prices the one that is filled and asked.
func (s *Bench) Use(c records.Config) {
	c.Metrics, c.Logger = metrics.New("server", "bench"), slog.New(slog.DiscardHandler)
	c.Now = func() time.Time { return s.Calls.At(s.Records).Add(time.Hour) }
	s.service = records.New(c)
}

// Ask asks an account the questions for which the documentation promises times. It reports the
// first answer and the 95th percentile of the others.
func (s *Bench) Ask(b *testing.B) {
	a := asker{b, s}
	for _, q := range a.questions() {
		a.measure(q)
	}
}

// Fill makes the records that follow the first ones, with four batches under way at a time.
//
// It calls noted with how many exist after each round, and returns how many do in the end, with
// the bytes of the bodies that it wrote.
func (s *Bench) Fill(b *testing.B, first int, noted func(made int)) (made int, payload int64) {
	const batch = 500
	if first < s.Records {
		first = first / benchRound * benchRound // an incomplete round is made again, and changes nothing
	}
	begun := time.Now()
	deadline := begun.Add(time.Hour)
	if n, err := strconv.Atoi(os.Getenv("PROMPTSPOOL_BENCH_FILL")); err == nil {
		deadline = begun.Add(time.Duration(n) * time.Second)
	}

	var bytes atomic.Int64
	for made = first; made < s.Records && time.Now().Before(deadline); noted(made) {
		var wg sync.WaitGroup
		end := min(made+benchRound, s.Records)
		work := make(chan int)
		for range 4 {
			wg.Go(func() {
				for n := range work {
					var events []wire.Event
					// Batches alternate between the accounts: each is a range of time.
					for i := n; i < min(n+batch, end); i++ {
						for _, e := range s.Calls.Events(i) {
							events = append(events, e)
							bytes.Add(int64(len(e.Body)))
						}
					}
					if _, err := s.service.Record(b.Context(), benchAccounts[n/batch%2], events); err != nil {
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
			first, made, s.Records, took.Round(time.Second), float64(made-first)/took.Seconds())
	}

	return made, bytes.Load()
}

// RunWritten checks that what a store writes for an event does not grow with the event's
// record. written returns how many bytes it has written so far.
func RunWritten(t *testing.T, s archive.Store, events int, written func() int64) {
	record, random := ID(1000), rand.New(rand.NewPCG(1, 2)) // for ids that do not compress
	apply(t, s, account, Event(t, 0, wire.KindRequest, record, requestBody("x")))
	grow := func(from, to int) (bytes int64) {
		begun := written()
		for n := from; n < to; n++ {
			e := Event(t, n+1, wire.KindScore, record, fmt.Sprintf(`{"score":%d}`, n%100))
			if n%4 == 0 {
				e = Event(t, n+1, wire.KindMetadata, record, fmt.Sprintf(`{"metadata":{"step":"%d"}}`, n))
			}
			e.ID = fmt.Sprintf("%s-%04x-%012x", ID(0)[:18], 0x8000|random.IntN(0x4000), random.Uint64N(1<<48))
			apply(t, s, account, e)
		}
		return written() - begun
	}

	// Three times as many events. If each wrote the whole record, the rest would write
	// fifteen times as much.
	first := grow(0, events/4)
	if rest := grow(events/4, events); rest > 6*first {
		t.Errorf("the first %d events wrote %d bytes, and the other %d wrote %d",
			events/4, first, events-events/4, rest)
	}

	state, _, err := s.Record(context.Background(), account, record)
	if err != nil || len(state.History) != 1+events {
		t.Errorf("the record has %d of %d events (%v)", len(state.History), 1+events, err)
	}
}

// question is asked n times. ask returns how much its nth variant finds.
type question struct {
	name  string
	times int
	ask   func(n int) int
}

// asker asks the questions of one benchmark, of the first account.
type asker struct {
	b *testing.B
	*Bench
}

// questions returns all of them. Each has variants, so that caches do not answer.
func (a *asker) questions() []question {
	return []question{
		{"newest page", 40, func(n int) int { return a.page(wire.Search{}) }},
		{"page by tag", 40, func(n int) int {
			return a.page(by(Condition("tags", "", "is", fmt.Sprintf("tag-%d", n%CallTags))))
		}},
		{"page by metadata value", 40, func(n int) int {
			return a.page(by(Condition("metadata", "user", "is", fmt.Sprintf("user-%d", n%CallUsers))))
		}},
		{"page by template version", 40, func(n int) int {
			return a.page(by(template(n), Condition("prompt_version_number", "", "eq", 1+n%10)))
		}},
		{"page by score within a day", 40, func(n int) int {
			return a.page(by(append(a.day(n), Condition("score", "quality", "between", []int{n, n + 20}))...))
		}},

		{"one in 100000", 5, func(n int) int {
			return a.page(by(Condition("tags", "", "is", RareTag)))
		}},
		{"one in 100000, text field", 5, func(n int) int {
			return a.page(by(Condition("tags", "", "contains", "in a hundred")))
		}},

		{"statistics of a template", 10, a.templateStatistics},
		{"analytics of everything", 3, a.analytics},
		{"free text over a day", 3, a.freeText},
	}
}

// template finds the calls of a template.
func template(n int) wire.Filter {
	return Condition("prompt_name", "", "is", fmt.Sprintf("template-%d", n%20))
}

// by returns a search with all of the conditions.
func by(conditions ...wire.Filter) wire.Search {
	return wire.Search{FilterGroup: &wire.Filter{Filters: conditions}}
}

// day returns the conditions for one of the days, other than the last.
func (a *asker) day(n int) []wire.Filter {
	from := a.Calls.Begin.Add(time.Duration(n%(benchDays-1)) * 24 * time.Hour)
	return []wire.Filter{
		Condition("list_time", "", "gte", from),
		Condition("list_time", "", "lt", from.Add(24*time.Hour)),
	}
}

// page returns how many records the first page of a search has.
func (a *asker) page(w wire.Search) int {
	w.PerPage = 25
	page, err := a.service.Search(context.Background(), benchAccounts[0], w)
	if err != nil {
		a.b.Fatal(err)
	}
	return len(page.Items)
}

func (a *asker) templateStatistics(n int) int {
	filter := &wire.Filter{Filters: []wire.Filter{template(n)}}
	w, err := a.service.Statistics(context.Background(), benchAccounts[0], wire.PartsQuery{
		StatisticsQuery: wire.StatisticsQuery{FilterGroup: filter},
	})
	if err != nil {
		a.b.Fatal(err)
	}
	return len(w.Items)
}

func (a *asker) analytics(int) int {
	w, err := a.service.Analyze(context.Background(), benchAccounts[0], wire.StatisticsQuery{})
	if err != nil {
		a.b.Fatal(err)
	}
	return int(w.TotalRequests)
}

func (a *asker) freeText(n int) int {
	w := by(a.day(3 * n)...)
	w.FilterGroup = withWords(RareWord, w.FilterGroup)
	page, err := a.service.Search(context.Background(), benchAccounts[0], w)

	// It may run out of time, which is no fault of the store.
	if err != nil || !page.Complete {
		a.b.Logf("free text: complete %v, %v", page.Complete, err)
	}

	return len(page.Items)
}

// measure asks one question and reports its times.
func (a *asker) measure(q question) {
	var took []time.Duration
	found, cpu := 0, cputimetest.Used()
	for n := range q.times {
		begun := time.Now()
		found += q.ask(n)
		took = append(took, time.Since(begun))
	}

	// The first one reads from the disk what later ones find in caches.
	each := (cputimetest.Used() - cpu) / time.Duration(q.times)
	first := took[0]
	slices.Sort(took)
	p95 := took[(len(took)*95+99)/100-1]

	a.b.Logf("%-28s first %8.1f ms, median %8.1f ms, p95 %8.1f ms, processor %8.1f ms each, found %d",
		q.name, ms(first), ms(took[len(took)/2]), ms(p95), ms(each), found)
	a.b.ReportMetric(ms(p95), metricName(q.name)+"-p95-ms")
}

func metricName(s string) string { return strings.ReplaceAll(s, " ", "-") }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Condition returns a filter on one field.
func Condition(field, key, operator string, value any) wire.Filter {
	raw, _ := json.Marshal(value)
	return wire.Filter{Field: field, NestedKey: key, Operator: operator, Value: raw}
}
