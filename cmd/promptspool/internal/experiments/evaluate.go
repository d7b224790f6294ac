package experiments

import (
	"cmp"
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
	"promptspool/api/wire/jsonscan"
)

// answer is what a call answered, as evaluators see it.
type answer struct {
	row
	call    calls.Call
	text    string
	latency *float64 // milliseconds; nil if it is unknown
	price   *float64 // US dollars; nil if it is unknown
}

// check reports whether an answer is good. Its error is why that cannot be known.
type check func(a *answer) (bool, error)

// evaluator judges answers: with code that is built in or, if it has a command, with that.
type evaluator struct {
	name    string // of the score
	text    string // as it was given
	judge   check  // nil for a command
	command []string
}

// builtin makes the evaluators that ask no model, from what follows their names.
var builtin = map[string]func(argument string) (check, error){
	"equal":     isEqual,
	"contains":  contains,
	"regex":     matches,
	"schema":    conforms,
	"tolerance": within,
	"tool":      callsTool,
	"latency":   atMost(func(a *answer) *float64 { return a.latency }),
	"cost":      atMost(func(a *answer) *float64 { return a.price }),
}

// scoreNames are those of evaluators that are called as what is measured of every call.
var scoreNames = map[string]string{"latency": "in_time", "cost": "in_budget"}

// evaluatorName is what precedes an evaluator whose score is called otherwise, or that is a command.
var evaluatorName = regexp.MustCompile(`^([\pL_][\pL\pN_.-]*)=`)

// parseEvaluator reads [NAME=]KIND[:ARGUMENT] or NAME=COMMAND.
func parseEvaluator(text string) (e evaluator, err error) {
	e.text = text
	if m := evaluatorName.FindStringSubmatch(text); m != nil {
		e.name, e.text = m[1], text[len(m[0]):]
	}
	kind, argument, _ := strings.Cut(e.text, ":")
	e.command = strings.Fields(e.text)

	switch newCheck := builtin[kind]; {
	case slices.Contains(experiment.Measured, e.name):
		err = errors.New("has the name of what is measured of every call; put another name in front")
	case newCheck != nil:
		e.name = cmp.Or(e.name, scoreNames[kind], kind)
		e.judge, err = newCheck(argument)
	case e.name == "" || len(e.command) == 0:
		err = errors.New("is none of equal, contains, regex, schema, tolerance, tool, latency and cost; " +
			"a command needs the name of its score in front: NAME=COMMAND")
	}

	return e, err
}

// expects returns the text that a row expects, or the argument in its place.
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
func isEqual(string) (check, error) {
	return func(a *answer) (bool, error) {
		expected, err := a.expects("")
		text := strings.TrimSpace(a.text)
		if err != nil || a.Expected[0] == '"' {
			return text == expected, err
		}
		var x, y any
		readable := json.Unmarshal(a.Expected, &x) == nil && json.Unmarshal([]byte(text), &y) == nil
		return readable && reflect.DeepEqual(x, y), nil
	}, nil
}

func contains(part string) (check, error) {
	return func(a *answer) (bool, error) {
		wanted, err := a.expects(part)
		return strings.Contains(a.text, wanted), err
	}, nil
}

func matches(expression string) (check, error) {
	re, err := regexp.Compile(expression)
	return func(a *answer) (bool, error) { return re.MatchString(a.text), nil }, err
}

// conforms checks answers against the JSON schema in a file.
func conforms(path string) (check, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	err = json.Unmarshal(text, &schema)
	if err != nil {
		return nil, fmt.Errorf("%s is not a JSON schema: %w", path, err)
	}
	resolved, err := schema.Resolve(nil)

	return func(a *answer) (bool, error) {
		var value any
		return json.Unmarshal([]byte(a.text), &value) == nil && resolved.Validate(value) == nil, nil
	}, err
}

func within(tolerance string) (check, error) {
	most, err := strconv.ParseFloat(tolerance, 64)
	return func(a *answer) (bool, error) {
		expected, err := a.expects("")
		if err != nil {
			return false, err
		}
		wanted, err := strconv.ParseFloat(expected, 64)
		got, isText := strconv.ParseFloat(strings.TrimSpace(a.text), 64)
		return isText == nil && math.Abs(got-wanted) <= most, err
	}, err
}

// callsTool looks for a call of a tool: NAME, or NAME {"argument": ...} with at least these arguments.
func callsTool(argument string) (check, error) {
	return func(a *answer) (bool, error) {
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
	}, nil
}

// atMost compares what is measured: a latency, which has a unit, or dollars.
func atMost(measured func(*answer) *float64) func(string) (check, error) {
	return func(argument string) (check, error) {
		most, err := strconv.ParseFloat(argument, 64)
		if d, isTime := time.ParseDuration(argument); isTime == nil {
			most, err = float64(d)/float64(time.Millisecond), nil
		}
		return func(a *answer) (bool, error) {
			v := measured(a)
			if v == nil {
				return false, errors.New("it is not known of the call")
			}
			return *v <= most, nil
		}, err
	}
}

// score lets an evaluator judge an answer, and returns the score as it is logged. A command answers with the
// members of a score.
func (e *evaluator) score(p *process, s step, a *answer) (json.RawMessage, error) {
	score := map[string]any{"author": e.text}
	if e.judge != nil {
		ok, err := e.judge(a)
		if err != nil {
			return nil, err
		}
		score["value"], score["source"] = ok, "code"
	} else {
		said, err := p.ask(s.ID, map[string]any{
			"id": s.ID, "row": a.row, "version": s.Version, "text": a.text, "request": s.Body,
		})
		if err == nil {
			err = json.Unmarshal(said, &score)
		}
		if err == nil && score["value"] == nil {
			err = errors.New("its answer has no value: " + shown(said))
		}
		if err != nil {
			return nil, err
		}
	}
	delete(score, "id")
	score["request_id"], score["name"] = s.ID, e.name

	return json.Marshal(score)
}
