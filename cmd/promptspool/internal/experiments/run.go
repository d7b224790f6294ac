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
	rowsMax     = 10_000
	attemptsMax = 5

	// Above these, a run must be confirmed.
	costMax    = 1.0 // US dollars
	unknownMax = 100 // calls of which the cost is unknown
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
	client      *client.Client
	id          wire.Identity
	command     []string
	timeout     time.Duration
	concurrency int
	junit       string
	evaluators  []evaluator
	gates       []gate

	journal *journal
	logged  map[int]experiment.Calls // by earlier runs

	mutex    sync.Mutex
	spent    float64 // US dollars, of the calls whose cost is known
	done     int64   // tasks
	failures int     // calls that got no answer
	failure  string  // the last one's
	answered bool
	silent   map[string]error // evaluators that could not judge an answer, and why
}

// experimentName are the names that experiments may have: a journal is called so.
var experimentName = regexp.MustCompile(`^[\pL\pN][\pL\pN._-]{0,99}$`)

func runExperiment(c *cli.Context) error {
	r := &run{command: c.Args().Slice(), silent: map[string]error{}}
	v := config.Read(c)
	if len(r.command) == 0 {
		return config.Usagef(c, "give the command that calls the model after --")
	}
	template, against := v.Required("template"), v.Text("against")
	limit, filtered := v.Count("limit", rowsMax), v.Text("filter")
	r.File, r.Name = v.Text("rows"), v.Text("name")
	r.concurrency, r.timeout, r.junit = v.Count("concurrency", 100), v.Duration("timeout"), v.Text("junit")
	_, err := selectCalls(filtered, v.Zone())
	if err != nil {
		v.Reject("filter", wire.AsError(err).Fields[0].Reason)
	}
	if (filtered == "") == (r.File == "") {
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

	if err := r.resolve(c, template, against); err != nil {
		return err
	}
	if r.File != "" {
		r.Rows, err = readRows(r.File)
		if err != nil {
			return err
		}
	}
	estimate, err := r.readPast(c, filtered, limit)
	if err != nil {
		return err
	}
	r.journal, err = openJournal(&r.plan)
	if err != nil {
		return err
	}

	return r.start(c, estimate)
}

// readJudges reads the evaluators and the gates.
func (r *run) readJudges(v *config.Reader, hasBase bool) {
	for _, text := range v.List("evaluate") {
		e, err := parseEvaluator(text)
		if err != nil {
			v.RejectValue("evaluate", text, err.Error())
		}
		if slices.ContainsFunc(r.evaluators, func(other evaluator) bool { return other.name == e.name }) {
			v.RejectValue("evaluate", text, "makes a second score "+e.name+"; put another name in front: NAME="+e.text)
		}
		r.evaluators = append(r.evaluators, e)
	}

	for _, text := range v.List("gate") {
		g, err := parseGate(text)
		if err != nil {
			v.RejectValue("gate", text, err.Error())
		}
		if g.ofBase && !hasBase {
			v.RejectValue("gate", text, "names base; give --against as well")
		}
		r.gates = append(r.gates, g)
	}
}

// resolve finds the versions that are meant now: a label may move meanwhile.
func (r *run) resolve(c *cli.Context, references ...string) error {
	for _, reference := range references {
		if reference == "" {
			continue
		}
		name, version, _ := strings.Cut(reference, "@")
		selector := wire.Selector{Label: version}
		if n, err := strconv.Atoi(version); err == nil {
			selector = wire.Selector{Version: n}
		}
		raw, err := r.client.Raw(c.Context, r.id, name, selector)
		if err != nil {
			return err
		}
		if r.Template != "" && r.Template != raw.Name || slices.Contains(r.Versions, raw.Version) {
			return config.Usagef(c, "--against is version %d of %s; give another version of the same template",
				raw.Version, raw.Name)
		}
		r.Template, r.Versions = raw.Name, append(r.Versions, raw.Version)
	}

	if r.Name == "" {
		short := r.Template[strings.LastIndexByte(r.Template, '/')+1:]
		r.Name = fmt.Sprintf("%s-v%d-%s", short, r.Versions[0], time.Now().UTC().Format("20060102-150405.000"))
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
func (r *run) readPast(c *cli.Context, line string, limit int) (*float64, error) {
	// An experiment is not about what experiments have asked.
	own := "-metadata." + experiment.NameKey + ":* template:" + strconv.Quote(r.Template)
	if line != "" {
		own += " (" + line + ")"
	}
	selected, err := selectCalls(own, config.Read(c).Zone())
	if err != nil {
		return nil, err
	}
	search := wire.Search{FilterGroup: selected, PerPage: min(limit, wire.PageItemsMax)}
	calls, known, cost := 0, 0, 0.0
	for calls < limit {
		page, err := r.client.Search(c.Context, r.id, search)
		if err != nil {
			return nil, err
		}
		for _, call := range page.Items[:min(len(page.Items), limit-calls)] {
			calls++
			if call.Price != nil {
				known++
				cost += *call.Price
			}
			if r.File == "" {
				r.Rows = append(r.Rows, row{ID: call.RequestID})
			}
		}
		if page.Total > limit && search.Cursor == "" && r.File == "" {
			fmt.Fprintf(c.App.ErrWriter, "Of %d calls, the newest %d are taken; --limit takes more.\n",
				page.Total, limit)
		}
		if page.NextCursor == nil {
			break
		}
		search.Cursor = *page.NextCursor
	}
	if known == 0 {
		return nil, nil
	}

	return new(cost / float64(known)), nil
}

// start asks what is not answered yet, if that may cost so much, and reports on all.
func (r *run) start(c *cli.Context, pastCost *float64) (err error) {
	if len(r.Rows) == 0 {
		return errors.Join(r.journal.end(), errors.New("there are no rows, so nothing was tried; "+
			"`promptspool requests search` with the same --filter shows which calls it finds"))
	}
	r.logged, err = experiment.Load(c.Context, r.search, r.Name)
	if err != nil {
		return err
	}
	var open []task
	for i := range r.Rows {
		for _, version := range r.Versions {
			if t := (task{r.Rows[i].ID, version}); !r.isDone(t) {
				open = append(open, t)
			}
		}
	}
	if err := r.confirm(c, open, pastCost); err != nil {
		if len(r.journal.steps) == 0 {
			err = errors.Join(err, r.journal.end())
		}
		return err
	}

	err = r.askAll(c, open)
	if err != nil {
		fmt.Fprintf(c.App.ErrWriter,
			"To continue, give the same command --name %s. What was answered is not asked again.\n", r.Name)
		if errors.Is(err, context.Canceled) {
			err = errors.New("the run was stopped")
		}
		return err
	}

	return errors.Join(r.report(c), r.journal.end())
}

func (r *run) search(ctx context.Context, s wire.Search) (wire.SearchPage, error) {
	return r.client.Search(ctx, r.id, s)
}

// isDone reports whether a task is logged with all its scores.
func (r *run) isDone(t task) bool {
	call := r.logged[t.Version][t.Row]
	return call != nil && !experiment.Failed(call) &&
		!slices.ContainsFunc(r.evaluators, func(e evaluator) bool { return !hasScore(call, e.name) })
}

func hasScore(call *wire.Row, name string) bool {
	return call != nil && slices.ContainsFunc(call.Scores, func(s wire.Score) bool { return s.Name == name })
}

// confirm says what a run is going to ask and what that may cost. Above a bound it goes no further without
// --yes.
func (r *run) confirm(c *cli.Context, open []task, pastCost *float64) error {
	out, unanswered := c.App.ErrWriter, 0
	for _, t := range open {
		s := r.journal.of(t)
		if s.Body == nil && (r.logged[t.Version][t.Row] == nil || experiment.Failed(r.logged[t.Version][t.Row])) {
			unanswered++
		}
		if s.ID != "" && s.Body == nil {
			fmt.Fprintf(out, "Row %s of version %d was asked when the last run ended, and its answer is not known. "+
				"It is asked again, and may be paid for twice.\n", print.Printable(t.Row), t.Version)
		}
	}
	expensive, cost := unanswered > unknownMax, "unknown, since no past call has a price"
	if pastCost != nil {
		total := *pastCost * float64(unanswered)
		expensive, cost = total > costMax, "about "+number.Dollars(total)+", by past calls"
	}

	versions := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(r.Versions)), " and "), "[]")
	fmt.Fprintf(out, "Experiment %s: %s with version %s of %s.\n", r.Name, print.Quantity(len(r.Rows), "row"), versions,
		print.Printable(r.Template))
	fmt.Fprintf(out, "%s to make. Cost: %s.\n", print.Quantity(unanswered, "call"), cost)
	if expensive && !c.Bool("yes") {
		return errors.New("this needs --yes; nothing was asked")
	}
	return nil
}

// askAll works off tasks, some at a time, each worker with its own processes. If the command is stopped,
// answers that are on their way are waited for.
func (r *run) askAll(c *cli.Context, open []task) error {
	progress := print.NewProgress(c, "Asked", "calls", int64(len(open)))
	defer progress.End()
	rows := map[string]*row{}
	for i := range r.Rows {
		rows[r.Rows[i].ID] = &r.Rows[i]
	}

	tasks := make(chan task)
	group, ctx := errgroup.WithContext(c.Context)
	group.Go(func() error {
		defer close(tasks)
		for _, t := range open {
			select {
			case tasks <- t:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range r.concurrency {
		group.Go(func() error {
			w := newWorker(r)
			defer w.stop()
			for t := range tasks {
				cost, err := w.do(ctx, t, *rows[t.Row])
				if err != nil {
					return err
				}
				spent, done := r.spend(cost)
				progress.Set("Asked for "+number.Dollars(spent), done)
			}
			return nil
		})
	}

	return group.Wait()
}

// spend adds the cost of a call, and returns that of all, and how many they are.
func (r *run) spend(cost float64) (spent float64, done int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.spent += cost
	r.done++
	return r.spent, r.done
}

// failuresMax is how many calls may fail before the first is answered. More would fail as well.
const failuresMax = 10

// count notes that a call was answered, or why not. Its error ends a run in which nothing works.
func (r *run) count(failure string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if failure == "" {
		r.answered = true
		return nil
	}
	r.failures, r.failure = r.failures+1, failure
	if r.answered || r.failures < failuresMax {
		return nil
	}
	return fmt.Errorf("the first %d calls failed, so the run ends; the last one: %s", r.failures, failure)
}

// unjudged notes that an evaluator could not judge an answer.
func (r *run) unjudged(name string, why error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.silent[name] = why
}
