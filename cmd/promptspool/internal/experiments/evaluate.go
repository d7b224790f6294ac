package experiments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"promptspool/api/calls"
	"promptspool/api/experiment"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// answer is what a call answered, as evaluators see it.
type answer struct {
	row
	call   calls.Call
	text   string
	logged *wire.Row
}

// check reports whether an answer is good by an evaluator's argument. Its error is why that cannot be known.
type check func(argument string, a *answer) (bool, error)

// checks are the evaluators that ask no model.
var checks = map[string]check{
	"equal": isEqual,
	"contains": func(argument string, a *answer) (bool, error) {
		wanted, err := a.expects(argument)
		return strings.Contains(a.text, wanted), err
	},
	"regex":     func(argument string, a *answer) (bool, error) { return regexp.MatchString(argument, a.text) },
	"schema":    conforms,
	"tolerance": isNear,
	"tool":      callsTool,
	"max_latency": func(argument string, a *answer) (bool, error) {
		most, err := time.ParseDuration(argument)
		return atMost(a.logged.Latency, most.Seconds(), err)
	},
	"max_cost": func(argument string, a *answer) (bool, error) {
		most, err := strconv.ParseFloat(argument, 64)
		return atMost(a.logged.Price, most, err)
	},
}

// evaluator judges answers by a check or, without one, by a command.
type evaluator struct {
	name     string // of the score
	text     string // as it was given
	argument string
	check    check
	command  command
}

// example is an answer that each check can judge, unless its argument is at fault.
var example = answer{
	row: row{Expected: json.RawMessage(`"0"`)}, text: "0", logged: &wire.Row{Latency: new(0.0), Price: new(0.0)},
}

// addEvaluator reads [NAME=]CHECK[:ARGUMENT] or NAME=COMMAND.
func (r *run) addEvaluator(text string, timeout time.Duration) (err error) {
	e := evaluator{text: text}
	name, rest, named := strings.Cut(text, "=")
	if named && !strings.ContainsAny(name, ": ") {
		e.name, e.text = name, rest
	}
	kind, argument, _ := strings.Cut(e.text, ":")
	e.check, e.argument = checks[kind], argument
	e.command = newCommand(strings.Fields(e.text), timeout)

	switch {
	case slices.Contains(experiment.Measured, e.name):
		return errors.New("has the name of what is measured of every call; put another name in front")
	case e.check != nil:
		e.name = cmp.Or(e.name, kind)
		_, err = e.check(argument, &example)
	case e.name == "" || len(e.command.args) == 0:
		return errors.New("is none of equal, contains, regex, schema, tolerance, tool, max_latency and max_cost; " +
			"a command needs the name of its score in front: NAME=COMMAND")
	}
	if slices.ContainsFunc(r.evaluators, func(other evaluator) bool { return other.name == e.name }) {
		err = errors.New("makes a second score " + e.name + "; put another name in front: NAME=" + e.text)
	}
	r.evaluators = append(r.evaluators, e)

	return err
}

// scored reports whether a call has the evaluator's score.
func (e *evaluator) scored(call *wire.Row) bool {
	return call != nil && slices.ContainsFunc(call.Scores, func(s wire.Score) bool { return s.Name == e.name })
}

// expects returns the argument or, without one, the text that the row expects.
func (a *answer) expects(argument string) (string, error) {
	switch {
	case argument != "":
		return argument, nil
	case len(a.Expected) == 0 || string(a.Expected) == "null":
		return "", errors.New("the row has no expected value")
	case a.Expected[0] == '"':
		return strings.TrimSpace(jsonscan.Unquote(a.Expected)), nil
	}
	return string(a.Expected), nil
}

// isEqual compares texts, or values unless a string is expected.
func isEqual(argument string, a *answer) (bool, error) {
	expected, err := a.expects(argument)
	text := strings.TrimSpace(a.text)
	if err != nil || text == expected || argument != "" || a.Expected[0] == '"' {
		return text == expected, err
	}
	var x, y any
	readable := json.Unmarshal(a.Expected, &x) == nil && json.Unmarshal([]byte(text), &y) == nil
	return readable && reflect.DeepEqual(x, y), nil
}

// conforms checks an answer against the JSON schema in a file.
func conforms(path string, a *answer) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	var schema jsonschema.Schema
	err = json.Unmarshal(text, &schema)
	if err != nil {
		return false, fmt.Errorf("%s is not a JSON schema: %w", path, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return false, err
	}
	var value any
	return json.Unmarshal([]byte(a.text), &value) == nil && resolved.Validate(value) == nil, nil
}

// isNear compares numbers.
func isNear(tolerance string, a *answer) (bool, error) {
	most, err := strconv.ParseFloat(tolerance, 64)
	expected, missing := a.expects("")
	wanted, notNumber := strconv.ParseFloat(expected, 64)
	got, isText := strconv.ParseFloat(strings.TrimSpace(a.text), 64)
	return isText == nil && math.Abs(got-wanted) <= most, cmp.Or(err, missing, notNumber)
}

// callsTool looks for a call of a tool: NAME, or NAME {"argument": ...} with at least these arguments.
func callsTool(argument string, a *answer) (bool, error) {
	wanted, err := a.expects(argument)
	name, text, _ := strings.Cut(wanted, " ")
	var arguments map[string]any
	if text != "" && err == nil {
		err = json.Unmarshal([]byte(text), &arguments)
	}

	for _, m := range a.call.Output {
		for _, called := range m.ToolCalls {
			var has map[string]any
			_ = json.Unmarshal([]byte(called.Arguments), &has)
			equal := called.Name == name
			for key, value := range arguments {
				equal = equal && reflect.DeepEqual(has[key], value)
			}
			if equal {
				return true, err
			}
		}
	}
	return false, err
}

func atMost(measured *float64, most float64, err error) (bool, error) {
	if measured == nil {
		return false, errors.New("it is not known of the call")
	}
	return *measured <= most, err
}

// score lets the evaluators judge the answer to a task, and logs the scores that it does not have yet.
func (r *run) score(ctx context.Context, t task) error {
	a := &answer{row: r.rows[t.Row], logged: r.logged[t.Version][t.Row]}
	var record wire.Record
	err := again(ctx, func() (err error) {
		record, err = r.client.Request(ctx, r.id, a.logged.RequestID)
		return err
	})
	if err != nil {
		return err
	}
	a.Variables = variablesOf(record)
	a.call = calls.Read(record.Request)
	_, a.text = a.call.Texts()

	var faults []error
	for _, e := range r.evaluators {
		if e.scored(a.logged) {
			continue
		}
		score, err := e.judge(t.Version, a, record.Request)
		if err == nil {
			err = r.post(ctx, "/rest/track-score", score)
			if err != nil && !wire.IsCode(err, wire.CodeInvalid) {
				return err
			}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s could not judge it: %w", e.name, err))
		}
	}
	if faults != nil {
		return fault{errors.Join(faults...)}
	}

	return nil
}

// judge returns the score of an answer as it is logged. A command answers with the members of a score.
func (e *evaluator) judge(version int, a *answer, request json.RawMessage) (json.RawMessage, error) {
	score := wire.ScoreBody{Author: e.text}
	if e.check != nil {
		good, err := e.check(e.argument, a)
		if err != nil {
			return nil, err
		}
		score.Source, score.Value = "code", strconv.AppendBool(nil, good)
	} else {
		id := a.logged.RequestID
		err := e.command.ask(id, map[string]any{
			"id": id, "row": a.row, "version": version, "text": a.text, "request": request,
		}, &score)
		if err == nil && (len(score.Value) == 0 || string(score.Value) == "null") {
			err = errors.New("its answer has no value")
		}
		if err != nil {
			return nil, err
		}
	}
	score.RequestID, score.Name = a.logged.RequestID, e.name

	return json.Marshal(score)
}
