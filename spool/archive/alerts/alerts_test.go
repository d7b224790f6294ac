package alerts_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive/alerts"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
)

// rows are the calls of one project.
type rows struct {
	mu    sync.Mutex
	all   []wire.Row
	reads int // rows that a scan has given
}

// Scan implements alerts.Records.
func (r *rows) Scan(
	ctx context.Context, _ string, q query.Query, _ rowcode.Columns, fn func(*wire.Row) (bool, error),
) (*query.Position, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.all, func(a, b wire.Row) int { return b.ListTime.Compare(a.ListTime) })
	for i := range r.all {
		if !q.Match(&query.Subject{Row: &r.all[i]}) {
			continue
		}
		r.reads++
		if more, err := fn(&r.all[i]); !more || err != nil {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

// add adds calls that were received at a moment.
func (r *rows) add(at time.Time, n int, change ...func(*wire.Row)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range n {
		row := wire.Row{ListTime: at.Add(-time.Second), AcceptedAt: at, Status: "SUCCESS"}
		for _, c := range change {
			c(&row)
		}
		r.all = append(r.all, row)
	}
}

func failed(r *wire.Row) { r.Status = "ERROR" }

func costs(dollars float64) func(*wire.Row) { return func(r *wire.Row) { r.Price = &dollars } }

func of(customer string) func(*wire.Row) {
	return func(r *wire.Row) { r.Metadata = []wire.MetadataRow{{Key: "customer", Value: customer}} }
}

// site is a project that servers watch.
type site struct {
	t     *testing.T
	calls *rows
	small *keyedtest.Memory
	store *accounts.Store
	*alerts.Service
}

var project = wire.Identity{Account: "acme"}

func open(t *testing.T) *site {
	s := &site{t: t, calls: &rows{}, small: &keyedtest.Memory{}}
	s.store = accounts.New(s.small, time.Now)
	for _, name := range []string{"ops", "chat"} {
		err := s.store.ChangeTarget(t.Context(), project, name, func(*wire.SealedTarget) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Service = s.server()
	return s
}

// server returns another server of the site.
func (s *site) server() *alerts.Service {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	return alerts.New(alerts.Config{Store: s.store, Records: s.calls, Logger: quiet})
}

// rule returns a rule of some settings, as an app sends it.
func rule(t *testing.T, name, settings string) wire.AlertRule {
	t.Helper()
	o, err := wire.ParseObject([]byte("{" + settings + "}"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := wire.DecodeNamed[wire.AlertRule](o, name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *site) put(name, settings string) {
	s.t.Helper()
	if err := s.PutAlert(s.t.Context(), project, rule(s.t, name, settings)); err != nil {
		s.t.Fatal(err)
	}
}

// notices returns what was put on its way, the oldest first.
func (s *site) notices() (all []wire.Notice) {
	s.t.Helper()
	items, err := keyed.List[wire.Notice](s.t.Context(), s.small, keyed.Key{Kind: "notices", Account: project.Account})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, item := range items {
		all = append(all, *item.Of)
	}
	return all
}

// told returns the titles of the notices.
func (s *site) told() (titles []string) {
	for _, n := range s.notices() {
		titles = append(titles, n.Title)
	}
	return titles
}

// alert returns the alert of a name.
func (s *site) alert(name string) wire.Alert {
	s.t.Helper()
	all, err := s.Alerts(s.t.Context(), project)
	at := slices.IndexFunc(all, func(a wire.Alert) bool { return a.Name == name })
	if err != nil || at < 0 {
		s.t.Fatalf("no alert %s: %v", name, err)
	}
	return all[at]
}

func (s *site) wants(want ...string) {
	s.t.Helper()
	if got := s.told(); !slices.Equal(got, want) {
		s.t.Errorf("at %s it has told\n%s\nwant\n%s",
			time.Now().UTC().Format("15:04:05"), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// run runs a server until the function that it returns is called.
func run(s *alerts.Service) (kill func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	return func() { cancel(); <-done }
}

func TestAnAlertFiresAfterSoManyWindowsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		defer run(s.Service)()
		s.put("errors", `"measure":"error_rate","when":"above","threshold":0.2,"window_minutes":5,"windows":2,`+
			`"filter":"template:triage","severity":"critical","targets":["ops"]`)
		triage := func(r *wire.Row) { r.PromptName = new("triage") }

		// One bad window is not enough, and calls of other templates do not count.
		for _, errors := range []int{0, 3, 0, 3, 3, 3, 0} {
			s.calls.add(time.Now().Add(time.Minute), 10-errors, triage)
			s.calls.add(time.Now().Add(4*time.Minute), errors, triage, failed)
			s.calls.add(time.Now().Add(4*time.Minute), 10, failed)
			time.Sleep(5 * time.Minute)
			synctest.Wait()
		}
		time.Sleep(30 * time.Second)
		s.wants("errors: error rate 30.0%, above 20.0%", "errors is over")

		told := s.notices()
		fired := told[0]
		labels := fmt.Sprint(fired.Labels)
		if fired.Type != wire.NoticeAlertFiring || labels != "map[alertname:errors severity:critical]" ||
			!slices.Equal(fired.Targets, []string{"ops"}) || fmt.Sprint(told[1].Labels) != labels {
			t.Errorf("it has told %+v", fired)
		}
		if want := "error rate 30.0%, above 20.0%, in the 5 min until 2000-01-01 00:25 UTC. " +
			"The alert fires for error rate above 20.0% in 5 min, 2 times in a row."; fired.Text != want {
			t.Errorf("the text is %q, want %q", fired.Text, want)
		}
		if want := "/requests?filter=template%3Atriage+received%3A%3E%3D2000-01-01T00%3A20%3A00Z" +
			"+received%3A%3C2000-01-01T00%3A25%3A00Z"; fired.URL != want {
			t.Errorf("the address is %s", fired.URL)
		}
	})
}

func TestACallCountsInTheWindowOfItsTimeWhileThatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		defer run(s.Service)()
		s.put("busy", `"measure":"requests","when":"above","threshold":9,"window_minutes":10`)
		begun := time.Now()

		// A sidecar had kept it; and one that comes after the window was judged changes nothing.
		time.Sleep(10*time.Minute + 10*time.Second)
		s.calls.add(begun.Add(time.Minute), 10)
		time.Sleep(20 * time.Second)
		s.wants("busy: requests 10, above 9")
		time.Sleep(10 * time.Minute)
		s.calls.add(begun.Add(12*time.Minute), 10)
		time.Sleep(10 * time.Minute)
		s.wants("busy: requests 10, above 9", "busy is over")

		// A call of an hour is one of the window in which it ended; what was imported is of none.
		s.calls.add(time.Now(), 10, func(r *wire.Row) { r.ListTime = r.ListTime.Add(-50 * time.Minute) })
		time.Sleep(11 * time.Minute)
		s.calls.add(time.Now(), 10, func(r *wire.Row) { r.ListTime = r.ListTime.Add(-24 * time.Hour) })
		time.Sleep(11 * time.Minute)
		s.wants("busy: requests 10, above 9", "busy is over", "busy: requests 10, above 9", "busy is over")
	})
}

func TestEachValueOfAKeyFiresByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		defer run(s.Service)()
		s.put("big", `"measure":"cost","when":"above","threshold":10,"window_minutes":1,"by":"metadata.customer"`)
		s.calls.add(time.Now(), 3, of("ann"), costs(4))
		s.calls.add(time.Now(), 2, of("bob"), costs(4))
		s.calls.add(time.Now(), 9, costs(4))
		time.Sleep(90 * time.Second)
		s.wants("big for ann: cost $12.00, above $10.00")

		s.calls.add(time.Now(), 1, of("bob"), costs(11))
		s.calls.add(time.Now(), 1, of("ann"), costs(11))
		time.Sleep(time.Minute)
		s.wants("big for ann: cost $12.00, above $10.00", "big for bob: cost $11.00, above $10.00")
		time.Sleep(time.Minute)
		if ends := s.notices()[2:]; len(ends) != 2 || ends[0].Labels["value"] == ends[1].Labels["value"] ||
			ends[0].Type != wire.NoticeAlertResolved || ends[1].Type != wire.NoticeAlertResolved {
			t.Errorf("the ends are %+v", ends)
		}
	})
}

func TestValuesBeyondTheBoundAreCountedAndNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		defer run(s.Service)()
		s.put("all",
			`"measure":"requests","when":"above","threshold":0,"window_minutes":1,"by":"metadata.customer"`)
		for i := range wire.AlertValuesMax + 7 {
			s.calls.add(time.Now(), 1, of(fmt.Sprint(i)))
		}
		time.Sleep(90 * time.Second)

		state := s.alert("all").State
		firing := len(state.Firing())
		if firing != wire.AlertFiringMax || state.LeftOut != 7 || len(state.Values) != wire.AlertValuesMax {
			t.Errorf("%d fire, %d calls left out, %d values", firing, state.LeftOut, len(state.Values))
		}
	})
}

func TestAChangeIsMeasuredAgainstTheWindowBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		defer run(s.Service)()
		s.put("up", `"measure":"cost","when":"rises","threshold":50,"window_minutes":1`)
		s.put("down", `"measure":"requests","when":"falls","threshold":50,"window_minutes":1`)
		for _, calls := range []int{4, 6, 10, 10, 4} {
			s.calls.add(time.Now(), calls, costs(1))
			time.Sleep(time.Minute)
		}
		time.Sleep(30 * time.Second)
		s.wants("up: cost $10.00, before $6.00", "up is over", "down: requests 4, before 10")
	})
}

func TestAWindowWithoutCallsMeansWhatTheRuleSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		defer run(s.Service)()
		for _, means := range []string{"ok", "keep", "fire"} {
			s.put(means,
				`"measure":"error_rate","when":"above","threshold":0.5,"window_minutes":1,"no_data":"`+means+`"`)
		}
		s.calls.add(time.Now(), 1, failed)
		time.Sleep(90 * time.Second)
		s.wants(s.told()...)
		if len(s.told()) != 3 {
			t.Errorf("it has told %q", s.told())
		}
		time.Sleep(time.Minute)
		for _, name := range []string{"ok", "keep", "fire"} {
			a := s.alert(name)
			if fires := len(a.State.Firing()) > 0; fires != (a.Name != "ok") {
				t.Errorf("%s fires: %v", a.Name, fires)
			}
		}
	})
}

func TestWhatFiresEndsWithItsRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		defer run(s.Service)()
		const settings = `"measure":"requests","when":"above","threshold":0,"window_minutes":1,"no_data":"keep"`
		s.put("a", settings)
		s.put("b", settings)
		s.calls.add(time.Now(), 1)
		time.Sleep(90 * time.Second)

		// Saved as it is, it goes on.
		s.put("a", settings)
		s.put("a", settings+`,"severity":"critical"`)
		if err := s.RemoveAlert(t.Context(), project, "b"); err != nil {
			t.Fatal(err)
		}
		told := s.told()[2:]
		slices.Sort(told)
		if !slices.Equal(told, []string{"a is over", "b is over"}) {
			t.Errorf("it has told %q", told)
		}
		if err := s.RemoveAlert(t.Context(), project, "b"); !wire.IsCode(err, wire.CodeNotFound) {
			t.Errorf("removed again: %v", err)
		}
	})
}

func TestOneServerJudgesAndAnotherContinuesWhenItIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.put("busy", `"measure":"requests","when":"above","threshold":0,"window_minutes":1,"windows":3`)
		first := run(s.Service)
		for range 2 {
			defer run(s.server())()
		}
		busy := func(minutes int) {
			for range minutes {
				s.calls.add(time.Now(), 1)
				time.Sleep(time.Minute)
			}
		}

		busy(2)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if s.calls.reads != 2 {
			t.Errorf("three servers have read %d rows, of two", s.calls.reads)
		}
		// Killed after two windows of three: the third is judged all the same, and once.
		first()
		busy(4)
		s.wants("busy: requests 1, above 0")
	})
}

func TestMissedWindowsAreJudgedInTheirOrderForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.put("busy", `"measure":"requests","when":"above","threshold":0,"window_minutes":1`)
		begun := time.Now()
		s.calls.add(begun.Add(3*time.Hour-90*time.Minute), 1)
		s.calls.add(begun.Add(3*time.Hour-50*time.Minute), 1)
		s.calls.add(begun.Add(3*time.Hour-10*time.Minute), 1)
		time.Sleep(3 * time.Hour)
		defer run(s.Service)()
		time.Sleep(90 * time.Second)
		s.wants("busy: requests 1, above 0", "busy is over", "busy: requests 1, above 0", "busy is over")
	})
}

func TestARuleThatCannotBeJudgedIsRefused(t *testing.T) {
	s := open(t)
	for filter, want := range map[string]string{
		"elephant":       "looks into prompts or responses",
		"since:1h":       "must not name a time",
		"received:today": "must not name a time",
		"cost:>x":        "is wrong at character",
	} {
		r := rule(t, "a", `"measure":"requests","when":"above","threshold":1`)
		r.Filter = filter
		_, tested := s.TestAlert(t.Context(), project, r)
		for _, err := range []error{s.PutAlert(t.Context(), project, r), tested} {
			e := wire.AsError(err)
			if err == nil || e.Code != wire.CodeInvalid || e.Fields[0].Field != "filter" ||
				!strings.Contains(e.Fields[0].Reason, want) {
				t.Errorf("%s: %v", filter, err)
			}
		}
	}

	r := rule(t, "", `"name":"a","measure":"requests","when":"above","threshold":1`)
	for i := range wire.AlertsMax + 1 {
		r.Name = fmt.Sprint(i)
		err := s.PutAlert(t.Context(), project, r)
		if full := i == wire.AlertsMax; wire.IsCode(err, wire.CodeConflict) != full || err != nil && !full {
			t.Fatalf("alert %d: %v", i, err)
		}
	}
}

// A view is looked up with each window, so that a rule follows it.
func TestARuleWatchesTheCallsOfASavedView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		defer run(s.Service)()
		view := func(filter string) {
			t.Helper()
			v := wire.View{Name: "failures", Address: "/requests?filter=" + url.QueryEscape(filter)}
			if err := s.store.PutView(t.Context(), project, v); err != nil {
				t.Fatal(err)
			}
		}
		const settings = `"measure":"requests","when":"above","threshold":1,"window_minutes":1,` +
			`"view":"failures","filter":"metadata.customer:ann"`
		r := rule(t, "a", settings)
		if err := s.PutAlert(t.Context(), project, r); wire.AsError(err).Fields[0].Field != "view" {
			t.Errorf("without its view: %v", err)
		}

		view("status:error")
		s.put("a", settings)
		s.calls.add(time.Now(), 2, of("ann"))
		s.calls.add(time.Now(), 2, of("bob"), failed)
		time.Sleep(90 * time.Second)
		s.wants()
		s.calls.add(time.Now(), 2, of("ann"), failed)
		time.Sleep(time.Minute)
		s.wants("a: requests 2, above 1")
		if url := s.alert("a").State.Firings[0].URL; !strings.Contains(url, "status%3Aerror+customer%3Aann+") {
			t.Errorf("its calls are at %s", url)
		}

		view("status:success")
		s.calls.add(time.Now(), 2, of("ann"), failed)
		time.Sleep(time.Minute)
		s.wants("a: requests 2, above 1", "a is over")
		view("since:7d")
		if a := s.alert("a"); !strings.Contains(a.Error, "must not name a time") {
			t.Errorf("a view that names a time: %+v", a)
		}
	})
}

func TestARuleNamesTargetsThatExist(t *testing.T) {
	s := open(t)
	const settings = `"measure":"requests","when":"above","threshold":1,"targets":["ops","pager"]`
	err := s.PutAlert(t.Context(), project, rule(t, "a", settings))
	if e := wire.AsError(err); e.Code != wire.CodeInvalid || e.Fields[0].Reason != "there is no target pager" {
		t.Errorf("an unknown target: %v", err)
	}

	s.put("a", strings.Replace(settings, "pager", "chat", 1))
	if err := s.store.RemoveTarget(t.Context(), project, "chat"); !wire.IsCode(err, wire.CodeConflict) {
		t.Errorf("a target that a rule names was removed: %v", err)
	}
	s.put("a", strings.Replace(settings, `,"pager"`, "", 1))
	if err := s.store.RemoveTarget(t.Context(), project, "chat"); err != nil {
		t.Error(err)
	}
}

// Whatever is measured, a rule fires as often as the look at the past says that it would have.
func TestARuleFiresAsOftenAsItsTestSays(t *testing.T) {
	fired := 0
	for seed := range 30 {
		synctest.Test(t, func(t *testing.T) {
			s, begun := open(t), time.Now()
			drawn := rapid.Custom(func(t *rapid.T) string {
				measures := []string{"requests", "error_rate", "cost", "tokens", "latency_p50", "score.ok"}
				r := fmt.Sprintf(
					`"measure":"%s","when":"%s","threshold":1,"window_minutes":%d,"windows":%d,"no_data":"%s"`,
					rapid.SampledFrom(measures).Draw(t, "of"),
					rapid.SampledFrom([]string{"above", "below", "rises", "falls"}).Draw(t, "when"),
					rapid.IntRange(1, 7).Draw(t, "window"), rapid.IntRange(1, 3).Draw(t, "windows"),
					rapid.SampledFrom([]string{"ok", "keep"}).Draw(t, "no data"))
				if rapid.Bool().Draw(t, "by") {
					r += `,"by":"metadata.customer"`
				}
				for range 40 {
					s.calls.add(begun.Add(time.Duration(rapid.IntRange(1800, 5400).Draw(t, "at"))*time.Second), 1,
						costs(rapid.Float64Range(0, 2).Draw(t, "cost")), func(r *wire.Row) {
							r.Status = rapid.SampledFrom([]string{"ERROR", "SUCCESS"}).Draw(t, "status")
							r.Latency = new(rapid.Float64Range(0, 3).Draw(t, "latency"))
							r.InputTokens = new(rapid.Int64Range(0, 2).Draw(t, "tokens"))
							r.Scores = []wire.Score{wire.IntegerScore("ok", rapid.IntRange(0, 3).Draw(t, "score"))}
							r.Metadata = []wire.MetadataRow{{Key: "customer",
								Value: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "customer")}}
						})
				}
				return r
			}).Example(seed)
			s.put("a", drawn)
			stop := run(s.Service)
			time.Sleep(100 * time.Minute)
			stop()

			a := s.alert("a")
			// The past has no calls, and the rule has to see some windows before it says what they mean.
			seen := begun.Add(25 * time.Minute)
			var lived, tested []string
			for _, n := range s.notices() {
				if n.Type == wire.NoticeAlertFiring && n.Time.After(seen) {
					lived = append(lived, fmt.Sprint(n.Time.Format("15:04 "), n.Labels["value"]))
				}
			}
			test, err := s.TestAlert(t.Context(), project, a.AlertRule)
			for _, f := range test.Firings {
				if f.At.After(seen) {
					tested = append(tested, fmt.Sprint(f.At.Format("15:04 "), f.By))
				}
			}
			slices.Sort(lived)
			slices.Sort(tested)
			if err != nil || !slices.Equal(lived, tested) || test.Partial {
				t.Errorf("%s: it fired at %q; the test says %q, %v", drawn, lived, tested, err)
			}
			fired += len(lived)
		})
	}
	if fired < 20 {
		t.Errorf("the rules fired %d times only", fired)
	}
}
