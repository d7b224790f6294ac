package reports_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/calls"
	"promptspool/spool/archive/reports"
)

// example is reports with what the rule makes of them. They were collected by somebody who knew only
// the page of the docs.
type example struct {
	Name    string     `json:"name"`
	Reports []said     `json:"reports"`
	Calls   [][]string `json:"calls"` // the ids of their reports, in order
	Steps   []string   `json:"steps,omitempty"`
	But     string     `json:"but,omitempty"` // why one may wish for something else
}

// said is what a report says. Copies are so many reports, each with a span of its own, Every so many
// seconds.
type said struct {
	ID     string  `json:"id"`
	Copies int     `json:"copies"`
	Every  float64 `json:"every"`

	Scope  string `json:"scope"` // "" of a REST log
	Key    string `json:"key"`
	Trace  string `json:"trace"`
	Span   string `json:"span"`
	Parent string `json:"parent"`

	ResponseID string    `json:"response_id"`
	At         time.Time `json:"at"`
	Start      float64   `json:"start"`
	End        *float64  `json:"end"`
	Same       string    `json:"body-identical-to"`

	Model    string   `json:"model"`
	Asked    string   `json:"model_asked"`
	Input    string   `json:"input"`
	Output   string   `json:"output"`
	Tools    []string `json:"tools"`
	Finish   string   `json:"finish"`
	Status   string   `json:"status"`
	User     string   `json:"user"`
	Session  string   `json:"session"`
	Sent     *int64   `json:"tokens_in"`
	Received *int64   `json:"tokens_out"`
}

// noon is when the examples begin: a Wednesday.
var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// week is how long the keys of something are the same.
const week = 7 * 24 * time.Hour

// report returns what the rule sees of a report.
func (s *said) report() *reports.Report {
	at := s.At
	if at.IsZero() {
		at = noon
	}
	seconds := func(n float64) time.Time { return at.Add(time.Duration(n * float64(time.Second))) }
	r := &reports.Report{
		Reporter: s.Scope,
		Key:      s.Key,
		Trace:    s.Trace,
		Start:    seconds(s.Start),
		Input:    s.Input,
		Output:   s.Output,
		Answered: s.Output != "" || len(s.Tools) > 0,
		Tools:    s.Tools,
		Finish:   calls.NormalFinish(s.Finish),
		Failed:   s.Status == "error",
		User:     s.User,
		Session:  s.Session,
		Tokens:   [2]*int64{s.Sent, s.Received},
	}
	copy(r.ID[:], s.ID)
	if r.End = r.Start; s.End != nil {
		r.End = seconds(*s.End)
	}
	for _, model := range []string{s.Model, s.Asked} {
		if model != "" && !strings.HasPrefix(model, "azure/") {
			r.Models = append(r.Models, reports.NormalModel(model))
		}
	}

	role := reports.Span
	if s.Scope == "" {
		role, r.Reporter, r.Accepted = reports.Named, reports.Logged, r.End
		if r.Body = s.ID; s.Same != "" {
			r.Body = s.Same
		}
	}
	if s.Span != "" {
		r.Places = append(r.Places, places(role, s.Key+s.Trace+s.Span, r.Start)...)
	}
	if s.Parent != "" {
		r.Places = append(r.Places, places(reports.Below, s.Key+s.Trace+s.Parent, r.Start)...)
	}
	if len(s.ResponseID) >= 20 {
		r.Response = s.ResponseID
		r.Places = append(r.Places, places(reports.Response, s.Key+s.ResponseID, r.Start)...)
	}

	return r
}

// places returns the places of a name at a moment: two near Monday, 00:00 UTC.
func places(role reports.Role, name string, at time.Time) (all []reports.Place) {
	for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
		monday := at.Add(off).Truncate(week).UnixMilli()
		sum := sha256.Sum256([]byte(name))
		key := reports.Key(slices.Concat(binary.BigEndian.AppendUint64(nil, uint64(monday))[2:], sum[:10]))
		all = append(all, reports.Place{Key: key, Role: role})
	}

	return slices.Compact(all)
}

// all returns the reports of an example.
func (e *example) all() (all []*reports.Report) {
	for _, s := range e.Reports {
		if s.Copies == 0 {
			all = append(all, s.report())
			continue
		}
		id, span := s.ID, s.Span
		for n := range s.Copies {
			s.ID = fmt.Sprintf("%s%02d", id, n)
			if span != "" {
				s.Span = fmt.Sprint(span, n)
			}
			all = append(all, s.report())
			s.Start += s.Every
			if s.End != nil {
				end := *s.End + s.Every
				s.End = &end
			}
		}
	}

	return all
}

// finder finds reports that are all there.
type finder map[reports.Place][]*reports.Report

func (f finder) Under(p reports.Place) (found []*reports.Report, crowded bool, err error) {
	if found = f[p]; len(found) > reports.MembersMax {
		return nil, true, nil
	}
	return found, false, nil
}

// divide divides reports into calls.
func divide(t rapid.TB, all []*reports.Report) (calls []reports.Call) {
	t.Helper()
	f := make(finder)
	for _, r := range all {
		for _, p := range r.Places {
			f[p] = append(f[p], r)
		}
	}

	// Whichever of a call one begins with, it is the same one.
	taken := make(map[*reports.Report]int)
	for _, r := range all {
		with, err := reports.CallsWith(r, f)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(with, func(c reports.Call) bool { return slices.Contains(c.Reports, r) })
		if i < 0 {
			t.Fatalf("no call has the report %+v", r)
		}
		if n, ok := taken[r]; ok {
			if !slices.Equal(calls[n].Reports, with[i].Reports) || calls[n].Step != with[i].Step {
				t.Fatalf("from another report, the call of %+v is\n%+v\n%+v", r, calls[n], with[i])
			}
			continue
		}
		for _, r := range with[i].Reports {
			if _, ok := taken[r]; ok {
				t.Fatalf("two calls have the report %+v", r)
			}
			taken[r] = len(calls)
		}
		calls = append(calls, with[i])
	}

	return calls
}

// divided returns the ids of the reports of each call, and those of steps.
func divided(t rapid.TB, all []*reports.Report) (of [][]string, steps []string) {
	t.Helper()
	name := func(r *reports.Report) string { return strings.TrimRight(string(r.ID[:]), "\x00") }
	for _, call := range divide(t, all) {
		var ids []string
		for _, r := range call.Reports {
			ids = append(ids, name(r))
		}
		slices.Sort(ids)
		if call.Step {
			steps = append(steps, ids...)
		} else {
			of = append(of, ids)
		}
	}
	slices.SortFunc(of, slices.Compare)
	slices.Sort(steps)

	return of, steps
}

func examples(t rapid.TB) (all []example) {
	t.Helper()
	text, err := os.ReadFile("testdata/counterexamples.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}

	return all
}

func TestCalls(t *testing.T) {
	names := make(map[string]bool)
	for _, e := range examples(t) {
		got := example{Name: e.Name, Reports: e.Reports, But: e.But}
		got.Calls, got.Steps = divided(t, e.all())
		if diff := cmp.Diff(e, got); diff != "" || names[e.Name] {
			t.Errorf("%s (-want +got):\n%s", e.Name, diff)
		}
		names[e.Name] = true
	}
}
