package archivetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Ask asks an archive that holds calls of so many days what the documentation promises, and reports the first answer and the 95th percentile of
// the others.
func Ask(b *testing.B, a *archive.Archive, id wire.Identity, calls *Calls, days int) {
	b.Helper()
	day := func(n int) []wire.Filter {
		from := calls.Begin.Add(time.Duration(n%(days-1)) * 24 * time.Hour)
		return []wire.Filter{Condition("accepted_at", "", "gte", from), Condition("accepted_at", "", "lt", from.Add(24*time.Hour))}
	}
	search := func(w wire.Search) int {
		w.PerPage = 25
		page, err := a.Search(context.Background(), id, w)
		if err != nil {
			b.Fatal(err)
		}
		return len(page.Items)
	}
	by := func(f ...wire.Filter) wire.Search { return wire.Search{FilterGroup: &wire.Filter{Filters: f}} }
	for _, q := range []struct {
		name  string
		times int
		ask   func(n int) int
	}{
		{"newest page", 40, func(n int) int { return search(wire.Search{}) }},
		{"page by tag", 40, func(n int) int {
			return search(by(Condition("tags", "", "is", fmt.Sprintf("tag-%d", n%CallTags))))
		}},
		{"page by metadata value", 40, func(n int) int {
			return search(by(Condition("metadata", "user", "is", fmt.Sprintf("user-%d", n%CallUsers))))
		}},
		{"page by template version", 40, func(n int) int {
			return search(by(Condition("prompt_name", "", "is", fmt.Sprintf("template-%d", n%20)), Condition("prompt_version_number", "", "eq", 1+n%10)))
		}},
		{"page by score within a day", 40, func(n int) int {
			return search(by(append(day(n), Condition("score", "quality", "between", []int{n, n + 20}))...))
		}},
		{"one in 100000", 5, func(n int) int { return search(by(Condition("tags", "", "is", RareTag))) }},
		{"one in 100000, text field", 5, func(n int) int { return search(by(Condition("tags", "", "contains", "in a hundred"))) }},
		{"statistics of a template", 10, func(n int) int {
			w, err := a.TemplateStatistics(context.Background(), id, wire.StatisticsQuery{
				FilterGroup: &wire.Filter{Filters: []wire.Filter{Condition("prompt_name", "", "is", fmt.Sprintf("template-%d", n%20))}}})
			if err != nil {
				b.Fatal(err)
			}
			return len(w.Versions)
		}},
		{"analytics of everything", 3, func(n int) int {
			w, err := a.Analyze(context.Background(), id, wire.StatisticsQuery{})
			if err != nil {
				b.Fatal(err)
			}
			return int(w.TotalRequests)
		}},
		{"free text over a day", 3, func(n int) int {
			w := by(day(3 * n)...)
			w.Q = RareWord
			page, err := a.Search(context.Background(), id, w)
			if err != nil || !page.Complete {
				b.Logf("free text: complete %v, %v", page.Complete, err)
			}
			return len(page.Items)
		}},
	} {
		var took []time.Duration
		found, cpu := 0, cpuTime()
		for n := range q.times {
			begun := time.Now()
			found += q.ask(n)
			took = append(took, time.Since(begun))
		}
		each := (cpuTime() - cpu) / time.Duration(q.times)
		first := took[0]
		slices.Sort(took)
		p95 := took[(len(took)*95+99)/100-1]
		b.Logf("%-28s first %8.1f ms, median %8.1f ms, p95 %8.1f ms, processor %8.1f ms each, found %d", q.name, ms(first), ms(took[len(took)/2]), ms(p95), ms(each), found)
		b.ReportMetric(ms(p95), metricName(q.name)+"-p95-ms")
	}
}

func metricName(s string) string {
	return strings.ReplaceAll(s, " ", "-")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Condition is a filter on one field.
func Condition(field, key, operator string, value any) wire.Filter {
	raw, _ := json.Marshal(value)
	return wire.Filter{Field: field, NestedKey: key, Operator: operator, Value: raw}
}

// cpuTime is what this process has had of the processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
