package databasetest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/metrics/cputimetest"
	"promptspool/spool/archive"
	"promptspool/spool/archive/alerts"
)

// Watching is what alerts, and who is told of them, need of a server's database.
type Watching interface {
	archive.Store
	alerts.Store

	ChangeTarget(ctx context.Context, id wire.Identity, name string, change func(*wire.SealedTarget) error) error
	SpreadNotices(ctx context.Context) error
	Deliver(ctx context.Context, account, name, holder string, last *wire.Attempt, until time.Time) (
		next *wire.Attempt, err error)
}

// target is one that servers deliver to at the same time.
type target struct {
	mu  sync.Mutex
	got []wire.Notice
}

// deliver sends what waits, as one server does. One that dies is killed before it knows that a notice arrived, and
// its time ends at once.
func (to *target) deliver(t *testing.T, server Watching, account, holder string, dies bool) {
	if err := server.SpreadNotices(t.Context()); err != nil {
		t.Error(err)
	}

	until := time.Now().AddDate(10, 0, 0)
	if dies {
		until = time.Time{}
	}
	for last := (*wire.Attempt)(nil); ; {
		next, err := server.Deliver(t.Context(), account, "hook", holder, last, until)
		if err != nil {
			t.Error(err)
		}
		if next == nil {
			return
		}
		to.mu.Lock()
		to.got = append(to.got, next.About[0])
		to.mu.Unlock()
		if dies {
			return
		}
		last = next
	}
}

// RunAlerts checks that each alert fires and ends once, whichever servers of one database judge it. A target is told
// so at least once, under one id and in order. Some servers are killed, also between the two.
func RunAlerts(t *testing.T, servers ...Watching) {
	now, account := Start, wire.NewID()
	id := wire.Identity{Account: account}
	judge := func(i int) *alerts.Service {
		return alerts.New(alerts.Config{
			Store:   servers[i%len(servers)],
			Records: servers[i%len(servers)],
			Logger:  slog.New(slog.DiscardHandler),
			Now:     func() time.Time { return now },
		})
	}
	hook := &target{}
	must(t, servers[0].ChangeTarget(t.Context(), id, "hook", func(*wire.SealedTarget) error { return nil }))
	put := func(name, settings string) {
		object, err := wire.ParseObject([]byte("{" + settings + "}"))
		must(t, err)
		r, err := wire.DecodeNamed[wire.AlertRule](object, name)
		must(t, err)
		must(t, judge(0).PutAlert(t.Context(), id, r))
	}
	for name, settings := range map[string]string{
		"errors":   `"measure":"error_rate","when":"above","threshold":0.5,"window_minutes":2,"windows":2`,
		"customer": `"measure":"requests","when":"above","threshold":3,"by":"metadata.customer","window_minutes":5`,
		"scores":   `"measure":"score.ok","when":"below","threshold":50,"filter":"tag:scored","window_minutes":1`,
	} {
		put(name, settings)
	}

	n := 0
	call := func(at time.Time, status, customer string, score int) {
		n += 3
		request := wire.NewIDAt(at)
		for i, e := range []struct {
			kind wire.Kind
			body string
		}{
			{wire.KindRequest, `"function_name":"f","status":"` + status + `","tags":["scored"]`},
			{wire.KindMetadata, `"metadata":{"customer":"` + customer + `"},"request_id":"` + request + `"`},
			{wire.KindScore, fmt.Sprintf(`"score":%d,"name":"ok","request_id":%q`, score, request)},
		} {
			apply(t, servers[n%len(servers)], account, Decode(t, wire.Event{
				ID:         ID(n + i),
				Kind:       e.kind,
				RequestID:  request,
				AcceptedAt: at,
				Sidecar:    "host-a",
				Body:       []byte("{" + e.body + "}"),
			}, now))
		}
	}

	running := []*alerts.Service{judge(0), judge(1), judge(2)}
	for minute := range 20 {
		now = Start.Add(time.Duration(minute)*time.Minute + 25*time.Second)
		status, score := "SUCCESS", 60
		if minute >= 4 && minute < 9 {
			status, score = "ERROR", 40
		}
		call(now.Add(-time.Second), status, []string{"ann", "bob"}[minute/10], score)
		// A sidecar brings these later, into a window that is open: without them ann would be over.
		if minute == 13 {
			for range 4 {
				call(now.Add(-2*time.Minute), "SUCCESS", "ann", 60)
			}
		}

		// One server is killed, and all of them.
		switch minute {
		case 6:
			running = running[1:]
		case 9:
			hook.deliver(t, servers[0], account, "killed", true)
		case 12:
			running = []*alerts.Service{judge(1), judge(2)}
		}
		var judging sync.WaitGroup
		for _, s := range running {
			judging.Go(func() {
				if err := s.Judge(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		judging.Wait()

		// Every other minute, so that several wait.
		var delivering sync.WaitGroup
		for i, server := range servers[:len(servers)*(minute%2)] {
			delivering.Go(func() { hook.deliver(t, server, account, strconv.Itoa(i), false) })
		}
		delivering.Wait()
	}

	var told []string
	ids := map[string]bool{}
	for _, n := range hook.got {
		if !ids[n.ID] {
			told = append(told, fmt.Sprintf("%s %s", n.Time.Format("15:04"), n.Title))
		}
		ids[n.ID] = true
	}
	want := []string{
		"12:05 customer for ann: requests 5, above 3",
		"12:05 scores: score.ok 40, below 50",
		"12:08 errors: error rate 100.0%, above 50.0%",
		"12:10 errors is over",
		"12:10 scores is over",
		"12:15 customer for bob: requests 5, above 3",
	}
	// Those of one moment are in any order.
	sorted := slices.IsSortedFunc(told, func(a, b string) int { return cmp.Compare(a[:5], b[:5]) })
	slices.Sort(told)
	if diff := gocmp.Diff(want, told); diff != "" || !sorted || len(hook.got) != len(want)+1 {
		t.Errorf("told %d times, in order: %v (-want +got):\n%s", len(hook.got), sorted, diff)
	}

	all, err := judge(1).Alerts(t.Context(), id)
	must(t, err)
	fired := map[string]int{}
	for _, a := range all {
		fired[a.Name] = a.State.Fired
	}
	if diff := gocmp.Diff(map[string]int{"customer": 2, "errors": 1, "scores": 1}, fired); diff != "" {
		t.Errorf("fired (-want +got):\n%s", diff)
	}
}

// JudgeCost reports which share of a core a hundred alerts of an account take. The Bench has filled the
// store, with at least five minutes. A quarter of the rules have no filter, and a third are by user.
func (s *Bench) JudgeCost(b *testing.B, at Watching) {
	begin, end := s.Calls.At(0), s.Calls.At(s.Records)
	now := begin
	service := alerts.New(alerts.Config{
		Store:   at,
		Records: at,
		Logger:  slog.New(slog.DiscardHandler),
		Now:     func() time.Time { return now },
	})
	filters := []string{"", "template:template-*", "cost:>0"}
	for i := range wire.AlertsMax {
		r := wire.AlertRule{
			Name:      strconv.Itoa(i),
			Filter:    append(filters, fmt.Sprintf("tag:tag-%d latency:>%dms", i%CallTags, i))[i%4],
			Measure:   wire.AlertMeasures[i%8],
			Window:    []int{1, 5}[i%2],
			When:      []string{"above", "rises"}[i%2],
			Threshold: new(1e9),
			Windows:   1,
			NoData:    "ok",
		}
		if i%3 == 0 {
			r.By = "metadata.user"
		}
		// A database that is kept has the last run's.
		_ = service.RemoveAlert(b.Context(), benchAccounts[0], r.Name)
		if err := service.PutAlert(b.Context(), benchAccounts[0], r); err != nil {
			b.Fatal(err)
		}
	}

	cpu, longest := cputimetest.Used(), time.Duration(0)
	for now = begin.Add(80 * time.Second); now.Before(end); now = now.Add(time.Minute) {
		before := time.Now()
		if err := service.Judge(b.Context()); err != nil {
			b.Fatal(err)
		}
		longest = max(longest, time.Since(before))
	}
	share := (cputimetest.Used() - cpu).Seconds() / now.Sub(begin).Seconds()
	b.ReportMetric(100*share, "core-%")
	b.ReportMetric(float64(longest.Milliseconds()), "longest-ms")
	b.Logf("%.0f calls a second for %v", float64(s.Records)/2/end.Sub(begin).Seconds(), end.Sub(begin))
}
