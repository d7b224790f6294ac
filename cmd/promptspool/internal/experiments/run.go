package experiments

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"promptspool/api/client"
	"promptspool/api/dashboard/number"
	"promptspool/api/experiment"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

const (
	rowsMax  = 10_000
	limitMax = wire.PageItemsMax

	// Above these, a run must be confirmed.
	costMax    = 1.0 // US dollars
	unknownMax = 100 // calls of which the cost is unknown

	faultsMax = 10 // of the first tasks, if none is without: more would fail as well; others are not shown
)

// run is an experiment that runs.
type run struct {
	plan
	c           *cli.Context
	client      *client.Client
	id          wire.Identity
	zone        string
	command     command
	concurrency int
	evaluators  []evaluator
	gates       []gate
	journal     journal
	steps       map[task]step            // of earlier runs
	rows        map[string]row           // by their ids
	logged      map[int]experiment.Calls // that the server has

	mutex  sync.Mutex
	spent  float64 // US dollars, of the calls whose cost is known
	faulty map[task]bool
	warned map[string]bool // what was said to the user
}

// experimentName are the names that experiments may have, up to nameMax characters: a journal is called so.
var experimentName = regexp.MustCompile(`^[\pL\pN][\pL\pN._-]*$`)

const nameMax = 100

// do does all of a run: its versions are chosen, its rows are read, answered and scored, and a report is printed.
func (r *run) do(template, against, line string, limit int) error {
	err := r.resolve(template, against)
	if err != nil {
		return err
	}
	if r.Name == "" {
		r.Name = time.Now().UTC().Format("20060102-150405.000")
	}
	past, cost, err := r.findPast(line, limit)
	r.Rows = past
	if err == nil && r.File != "" {
		r.Rows, err = readRows(r.File)
	}
	switch {
	case err != nil:
		return err
	case len(r.Rows) > rowsMax:
		return fmt.Errorf("%s has more than %d rows", r.File, rowsMax)
	case len(r.Rows) == 0:
		return errors.New("there are no rows, so nothing was tried; `promptspool requests search` with the same " +
			"--filter shows which calls it finds")
	}

	r.journal, r.steps, err = openJournal(&r.plan)
	if err == nil {
		err = r.confirm(cost)
	}
	if err != nil {
		return err
	}
	defer r.command.stop()
	for i := range r.evaluators {
		defer r.evaluators[i].command.stop()
	}
	err = r.stage("Asking", answered, r.answer)
	if err == nil {
		err = r.stage("Scoring", r.scored, r.score)
	}
	if err != nil {
		r.say("To continue, give the same command --name %s. What was answered is not asked again.", r.Name)
		return err
	}

	return r.report()
}

// resolve finds the versions that are meant now: a label may move meanwhile.
func (r *run) resolve(references ...string) error {
	for _, reference := range references {
		if reference == "" {
			continue
		}
		name, version, _ := strings.Cut(reference, "@")
		raw, err := r.client.Raw(r.c.Context, r.id, name, wire.ParseSelector(version))
		if err != nil {
			return err
		}
		if r.Versions != nil && (r.Template != raw.Name || r.Versions[0] == raw.Version) {
			return config.Usagef(r.c, "--against is version %d of %s; give another version of the same template",
				raw.Version, raw.Name)
		}
		r.Template, r.Versions = raw.Name, append(r.Versions, raw.Version)
	}
	return nil
}

// findPast finds past calls of the template, the newest first, and what a call has cost on average; nil if that
// is not known.
func (r *run) findPast(line string, limit int) (found []row, cost *float64, err error) {
	of := wire.Filter{Filters: []wire.Filter{wire.Where("prompt_name", "is", r.Template)}}
	if line != "" {
		// An experiment is not about what experiments have asked.
		own := wire.Where("metadata", "is_null", nil)
		own.NestedKey = experiment.NameKey
		of.Filters = append(of.Filters, own)
	}
	page, err := r.search(r.c.Context, wire.Search{
		FilterGroup: &of, FilterLine: wire.FilterLine{Line: line, Zone: r.zone}, PerPage: limit,
	})
	if err != nil {
		return nil, nil, err
	}
	if page.Total > limit && line != "" {
		fmt.Fprintf(r.c.App.ErrWriter, "Of %d calls, the newest %d are taken; --limit takes more.\n",
			page.Total, limit)
	}

	known, sum := 0.0, 0.0
	for _, call := range page.Items {
		found = append(found, row{ID: call.RequestID})
		if call.Price != nil {
			known, sum = known+1, sum+*call.Price
		}
	}
	if known > 0 {
		cost = new(sum / known)
	}

	return found, cost, nil
}

func (r *run) search(ctx context.Context, s wire.Search) (wire.SearchPage, error) {
	return r.client.Search(ctx, r.id, s)
}

// confirm says what a run is going to ask and what that may cost, by what a past call has cost. Above a bound
// it goes no further without --yes.
func (r *run) confirm(pastCost *float64) error {
	open, err := r.lacking(answered)
	if err != nil {
		return err
	}
	asks := 0
	for _, t := range open {
		s := r.steps[t]
		if s.Body == nil {
			asks++
		}
		if s.Body == nil && s.ID != "" {
			r.say("row %s of version %d was asked when the last run ended, and its answer is not known: "+
				"it is asked again, and may be paid for twice", t.Row, t.Version)
		}
	}

	expensive, cost := asks > unknownMax, "unknown, since no past call has a price"
	if pastCost != nil {
		total := *pastCost * float64(asks)
		expensive, cost = total > costMax, "about "+number.Dollars(total)+", by past calls"
	}
	r.say("Experiment %s: %s, versions %v of %s.", r.Name, print.Quantity(len(r.Rows), "row"), r.Versions, r.Template)
	r.say("%s to make. Cost: %s.", print.Quantity(asks, "call"), cost)
	if !expensive || r.c.Bool("yes") {
		return nil
	}
	if len(r.steps) == 0 {
		err = r.journal.end()
	}
	return errors.Join(errors.New("this needs --yes; nothing was asked"), err)
}

// answered reports whether a call has an answer.
func answered(call *wire.Row) bool { return call != nil && !experiment.Failed(call) }

// scored reports whether a call has the scores of all evaluators, or no answer.
func (r *run) scored(call *wire.Row) bool {
	return !answered(call) || !slices.ContainsFunc(r.evaluators, func(e evaluator) bool { return !e.scored(call) })
}

// lacking returns the tasks to which the server has no call as it is wanted.
func (r *run) lacking(wanted func(call *wire.Row) bool) (open []task, err error) {
	r.logged, err = experiment.Load(r.c.Context, r.search, r.Name, r.Template)
	r.rows = map[string]row{}
	for _, of := range r.Rows {
		r.rows[of.ID] = of
		for _, version := range r.Versions {
			if !wanted(r.logged[version][of.ID]) {
				open = append(open, task{of.ID, version})
			}
		}
	}
	return open, err
}

// stage does something with all tasks to which the server has no call as it is wanted, and waits until it has: a
// sidecar forwards in its own time.
func (r *run) stage(name string, wanted func(*wire.Row) bool, do func(context.Context, task) error) error {
	open, err := r.lacking(wanted)
	if err == nil {
		err = r.each(name, open, do)
	}
	if err != nil {
		return err
	}

	return again(r.c.Context, func() error {
		open, err := r.lacking(wanted)
		open = slices.DeleteFunc(open, func(t task) bool { return r.faulty[t] && r.logged[t.Version][t.Row] != nil })
		if err == nil && len(open) > 0 {
			err = wire.Errorf(wire.CodeUnavailable, "The server does not have all of %s yet.",
				print.Quantity(len(open), "call"))
		}
		return err
	})
}

// fault is what is wrong with one task alone.
type fault struct{ error }

// each does something with tasks, some at a time. It ends if something is wrong with each of the first. If the
// command is stopped, answers that are on their way are waited for.
func (r *run) each(stage string, tasks []task, do func(context.Context, task) error) error {
	progress := print.NewProgress(r.c, stage, "calls", int64(len(tasks)))
	defer progress.End()
	done, faults := 0, 0
	group, ctx := errgroup.WithContext(r.c.Context)
	group.SetLimit(r.concurrency)
	for _, t := range tasks {
		group.Go(func() error {
			if ctx.Err() != nil {
				return errors.New("the run was stopped")
			}
			err := do(ctx, t)
			r.mutex.Lock()
			defer r.mutex.Unlock()
			done++
			progress.Set(stage+" for "+number.Dollars(r.spent), int64(done))
			if f := (fault{}); !errors.As(err, &f) {
				return err
			}

			faults++
			r.faulty[t] = true
			if faults <= faultsMax {
				r.say("row %s of version %d: %v", t.Row, t.Version, err)
			}
			if faults == done && done == min(len(tasks), faultsMax) {
				return fmt.Errorf("%s failed for each of the first calls, so the run ends", strings.ToLower(stage))
			}
			return nil
		})
	}

	return group.Wait()
}

// again repeats what a server was away for, for half a minute.
func again(ctx context.Context, do func() error) error {
	for end := time.Now().Add(30 * time.Second); ; {
		err := do()
		retries := wire.IsCode(err, wire.CodeUnavailable) || wire.IsCode(err, wire.CodeTooMany)
		if !retries || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(max(time.Second, wire.AsError(err).RetryAfter)):
		case <-ctx.Done():
			return err
		}
	}
}

// warn says something once.
func (r *run) warn(text string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.warned[text] {
		r.warned[text] = true
		r.say("%s", text)
	}
}

// say prints a line for the user.
func (r *run) say(format string, args ...any) {
	fmt.Fprintln(r.c.App.ErrWriter, print.Printable(fmt.Sprintf(format, args...)))
}
