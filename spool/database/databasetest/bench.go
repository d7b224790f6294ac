package databasetest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
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
	a := asker{b, s.service, benchAccounts[0], s.Calls, benchDays}
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
