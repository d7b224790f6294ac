package databasetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics/cputimetest"
	"promptspool/spool/archive/records"
)

// question is asked n times. ask returns how much its nth variant finds.
type question struct {
	name  string
	times int
	ask   func(n int) int
}

// asker asks the questions of one benchmark.
type asker struct {
	b     *testing.B
	a     *records.Service
	id    wire.Identity
	calls *Calls
	days  int
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
	from := a.calls.Begin.Add(time.Duration(n%(a.days-1)) * 24 * time.Hour)
	return []wire.Filter{
		Condition("list_time", "", "gte", from),
		Condition("list_time", "", "lt", from.Add(24*time.Hour)),
	}
}

// page returns how many records the first page of a search has.
func (a *asker) page(w wire.Search) int {
	w.PerPage = 25
	page, err := a.a.Search(context.Background(), a.id, w)
	if err != nil {
		a.b.Fatal(err)
	}
	return len(page.Items)
}

func (a *asker) templateStatistics(n int) int {
	filter := &wire.Filter{Filters: []wire.Filter{template(n)}}
	w, err := a.a.Statistics(context.Background(), a.id, wire.PartsQuery{
		StatisticsQuery: wire.StatisticsQuery{FilterGroup: filter},
	})
	if err != nil {
		a.b.Fatal(err)
	}
	return len(w.Items)
}

func (a *asker) analytics(int) int {
	w, err := a.a.Analyze(context.Background(), a.id, wire.StatisticsQuery{})
	if err != nil {
		a.b.Fatal(err)
	}
	return int(w.TotalRequests)
}

func (a *asker) freeText(n int) int {
	w := by(a.day(3 * n)...)
	w.FilterGroup = withWords(RareWord, w.FilterGroup)
	page, err := a.a.Search(context.Background(), a.id, w)

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
