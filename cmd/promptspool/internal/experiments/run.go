package experiments

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"promptspool/api/client"
	"promptspool/api/dashboard/number"
	"promptspool/api/experiment"
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

const (
	rowsMax = 10_000

	// Above these, a run must be confirmed.
	costMax    = 1.0 // US dollars
	unknownMax = 100 // calls of which the cost is unknown

	failuresMax = 10 // of the first calls, if none is answered: more would fail as well
	notesMax    = 10 // faults of single calls that are shown
)

// plan is what an interrupted run must find again.
type plan struct {
	Name     string `json:"name"`
	Template string `json:"template"`
	Versions []int  `json:"versions"` // the one to try, and the base if there is one
	File     string `json:"file,omitempty"`
	Rows     []row  `json:"rows"`
}

// run is an experiment that runs.
type run struct {
	plan
	c          *cli.Context
	client     *client.Client
	id         wire.Identity
	command    []string
	timeout    time.Duration
	evaluators []evaluator
	gates      []gate
	journal    *journal
	logged     map[int]experiment.Calls // by earlier runs

	mutex    sync.Mutex
	spent    float64 // US dollars, of the calls whose cost is known
	done     int     // tasks
	failures int
	notes    int
}

// experimentName are the names that experiments may have: a journal is called so.
var experimentName = regexp.MustCompile(`^[\pL\pN][\pL\pN._-]{0,99}$`)

func runExperiment(c *cli.Context) (err error) {
	v := config.Read(c)
	r := &run{c: c, command: c.Args().Slice(), timeout: v.Duration("timeout")}
	if len(r.command) == 0 {
		return config.Usagef(c, "give the command that calls the model after --")
	}
	template, against, line := v.Required("template"), v.Text("against"), v.Text("filter")
	r.File, r.Name = v.Text("rows"), v.Text("name")
	limit, concurrency := v.Count("limit", rowsMax), v.Count("concurrency", 100)
	if _, err := selectCalls(line, v.Zone()); err != nil {
		v.Reject("filter", wire.AsError(err).Fields[0].Reason)
	}
	if (line == "") == (r.File == "") {
		v.Note(errors.New("give --filter or --rows, and not both"))
	}
	if r.Name != "" && !experimentName.MatchString(r.Name) {
		v.Reject("name", "is not a name of letters, digits, dots, dashes and underscores")
	}
	r.readJudges(v, against != "")
	r.client, r.id, err = v.Remote()
	if err != nil {
		return err
	}

	err = r.resolve(template, against)
	if err == nil && r.File != "" {
		r.Rows, err = readRows(r.File)
	}
	if err != nil {
		return err
	}
	cost, err := r.readPast(line, limit)
	if err != nil {
		return err
	}
	if len(r.Rows) > rowsMax {
		return fmt.Errorf("%s has more than %d rows", r.File, rowsMax)
	}
	if len(r.Rows) == 0 {
		return errors.New("there are no rows, so nothing was tried; `promptspool requests search` with the same " +
			"--filter shows which calls it finds")
	}
	r.journal, err = openJournal(&r.plan)
	if err != nil {
		return err
	}

	return r.start(cost, concurrency)
}

// readJudges reads the evaluators and the gates.
func (r *run) readJudges(v *config.Reader, hasBase bool) {
	names := map[string]bool{}
	for _, text := range v.List("evaluate") {
		e, err := parseEvaluator(text)
		if err == nil && names[e.name] {
			err = errors.New("makes a second score " + e.name + "; put another name in front: NAME=" + e.text)
		}
		if err != nil {
			v.RejectValue("evaluate", text, err.Error())
		}
		names[e.name], r.evaluators = true, append(r.evaluators, e)
	}

	for _, text := range v.List("gate") {
		g, err := parseGate(text)
		if g.ofBase && !hasBase {
			err = errors.New("names base; give --against as well")
		}
		if err != nil {
			v.RejectValue("gate", text, err.Error())
		}
		r.gates = append(r.gates, g)
	}
}

// resolve finds the versions that are meant now: a label may move meanwhile.
func (r *run) resolve(references ...string) error {
	for _, reference := range references {
		if reference == "" {
			continue
		}
		name, version, _ := strings.Cut(reference, "@")
		selector := wire.Selector{Label: version}
		if n, err := strconv.Atoi(version); err == nil {
			selector = wire.Selector{Version: n}
		}
		raw, err := r.client.Raw(r.c.Context, r.id, name, selector)
		if err != nil {
			return err
		}
		if r.Versions != nil && (r.Template != raw.Name || r.Versions[0] == raw.Version) {
			return config.Usagef(r.c, "--against is version %d of %s; give another version of the same template",
				raw.Version, raw.Name)
		}
		r.Template, r.Versions = raw.Name, append(r.Versions, raw.Version)
	}

	if r.Name == "" {
		short := r.Template[strings.LastIndexByte(r.Template, '/')+1:]
		now := time.Now().UTC().Format("20060102-150405.000")
		r.Name = strings.Map(func(c rune) rune {
			if experimentName.MatchString("a" + string(c)) {
				return c
			}
			return '-'
		}, fmt.Sprintf("%s-v%d-%s", short, r.Versions[0], now))
	}
	return nil
}

// selectCalls compiles a filter line.
func selectCalls(line string, zone *time.Location) (*wire.Filter, error) {
	parsed, err := filterline.Parse(line)
	if err != nil {
		return nil, err
	}
	return parsed.Compile(filterline.Clock{Now: time.Now(), Zone: zone})
}

// readPast takes the rows from past calls of the template, unless they are of a file, and returns what a
// call has cost on average; nil if that is not known.
func (r *run) readPast(line string, limit int) (*float64, error) {
	// An experiment is not about what experiments have asked.
	own := "-metadata." + experiment.NameKey + ":* template:" + strconv.Quote(r.Template)
	if line != "" {
		own += " (" + line + ")"
	}
	selected, err := selectCalls(own, config.Read(r.c).Zone())
	if err != nil {
		return nil, err
	}
	search := wire.Search{FilterGroup: selected, PerPage: min(limit, wire.PageItemsMax)}
	count, known, cost := 0, 0, 0.0
	for page := (wire.SearchPage{}); count < limit; search.Cursor = *page.NextCursor {
		page, err = r.search(r.c.Context, search)
		if err != nil {
			return nil, err
		}
		if page.Total > limit && count == 0 && r.File == "" {
			fmt.Fprintf(r.c.App.ErrWriter, "Of %d calls, the newest %d are taken; --limit takes more.\n",
				page.Total, limit)
		}
		for _, call := range page.Items[:min(len(page.Items), limit-count)] {
			count++
			if call.Price != nil {
				known, cost = known+1, cost+*call.Price
			}
			if r.File == "" {
				r.Rows = append(r.Rows, row{ID: call.RequestID})
			}
		}
		if page.NextCursor == nil {
			break
		}
	}
	if known == 0 {
		return nil, nil
	}

	return new(cost / float64(known)), nil
}

func (r *run) search(ctx context.Context, s wire.Search) (wire.SearchPage, error) {
	return r.client.Search(ctx, r.id, s)
}

// loggedAnswer returns the call in which an earlier run logged the answer to a task; nil if there is none.
func (r *run) loggedAnswer(t task) *wire.Row {
	if call := r.logged[t.Version][t.Row]; call != nil && !experiment.Failed(call) {
		return call
	}
	return nil
}

func hasScore(call *wire.Row, name string) bool {
	return call != nil && slices.ContainsFunc(call.Scores, func(s wire.Score) bool { return s.Name == name })
}

// start asks what is not answered yet, if that may cost so much, and reports on all.
func (r *run) start(pastCost *float64, concurrency int) (err error) {
	r.logged, err = experiment.Load(r.c.Context, r.search, r.Name, r.Template)
	if err != nil {
		return err
	}
	var open []task
	rows, asks := map[string]row{}, 0
	for _, of := range r.Rows {
		rows[of.ID] = of
		for _, version := range r.Versions {
			t := task{of.ID, version}
			s, call := r.journal.of(t), r.loggedAnswer(t)
			unscored := slices.ContainsFunc(r.evaluators, func(e evaluator) bool { return !hasScore(call, e.name) })
			if call == nil || unscored {
				open = append(open, t)
			}
			if call == nil && s.Body == nil {
				asks++
			}
			if call == nil && s.Body == nil && s.ID != "" {
				r.note("row %s of version %d was asked when the last run ended, and its answer is not known: "+
					"it is asked again, and may be paid for twice", t.Row, t.Version)
			}
		}
	}
	err = r.confirm(asks, pastCost)
	if err != nil {
		return err
	}

	err = r.askAll(open, rows, concurrency)
	if err != nil {
		fmt.Fprintf(r.c.App.ErrWriter,
			"To continue, give the same command --name %s. What was answered is not asked again.\n", r.Name)
		return err
	}

	return r.report()
}

// confirm says what a run is going to ask and what that may cost. Above a bound it goes no further without
// --yes.
func (r *run) confirm(asks int, pastCost *float64) error {
	expensive, cost := asks > unknownMax, "unknown, since no past call has a price"
	if pastCost != nil {
		total := *pastCost * float64(asks)
		expensive, cost = total > costMax, "about "+number.Dollars(total)+", by past calls"
	}
	fmt.Fprintf(r.c.App.ErrWriter, "Experiment %s: %s, versions %v of %s.\n%s to make. Cost: %s.\n", r.Name,
		print.Quantity(len(r.Rows), "row"), r.Versions, print.Printable(r.Template), print.Quantity(asks, "call"), cost)
	if expensive && !r.c.Bool("yes") {
		return errors.New("this needs --yes; nothing was asked")
	}
	return nil
}

// askAll works off tasks, some at a time. If the command is stopped, answers that are on their way are
// waited for.
func (r *run) askAll(open []task, rows map[string]row, concurrency int) error {
	progress := print.NewProgress(r.c, "Asking", "calls", int64(len(open)))
	defer progress.End()
	tasks := make(chan task)
	group, ctx := errgroup.WithContext(r.c.Context)
	group.Go(func() error {
		defer close(tasks)
		for _, t := range open {
			select {
			case tasks <- t:
			case <-ctx.Done():
				return errors.New("the run was stopped")
			}
		}
		return nil
	})

	for range concurrency {
		group.Go(func() error {
			w := newWorker(r)
			defer w.stop()
			for t := range tasks {
				if err := w.do(ctx, t, rows[t.Row]); err != nil {
					return err
				}
				r.mutex.Lock()
				progress.Set("Asked for "+number.Dollars(r.spent), int64(r.done))
				r.mutex.Unlock()
			}
			return nil
		})
	}

	err := group.Wait()
	if err == nil && r.failures > 0 && r.failures == r.done {
		err = errors.New("every call failed")
	}
	return err
}

// spend adds the cost of a call, if it is known.
func (r *run) spend(cost *float64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.spent += wire.OrZero(cost)
}

// count counts a task. Its error ends a run in which nothing works.
func (r *run) count(failed bool) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.done++
	if failed {
		r.failures++
	}
	if r.failures == r.done && r.done >= failuresMax {
		return fmt.Errorf("the first %d calls failed, so the run ends", r.done)
	}
	return nil
}

// note prints a fault of a single call.
func (r *run) note(format string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.notes++
	if r.notes <= notesMax {
		fmt.Fprintln(r.c.App.ErrWriter, print.Printable(fmt.Sprintf(format, args...)))
	}
}
