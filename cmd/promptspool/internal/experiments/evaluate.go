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
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// answer is what a call answered, as evaluators see it.
type answer struct {
	row
	call    calls.Call
	text    string
	latency time.Duration
	price   *float64 // nil if it is unknown
}

// newAnswer reads a call as it was logged.
func newAnswer(of row, body json.RawMessage, price *float64) *answer {
	var times struct {
		Start float64 `json:"request_start_time"`
		End   float64 `json:"request_end_time"`
	}
	_ = json.Unmarshal(body, &times)
	a := &answer{row: of, call: calls.Read(body), price: price}
	a.latency = time.Duration((times.End - times.Start) * float64(time.Second))
	_, a.text = a.call.Texts()

	return a
}

// evaluator judges answers: with code that is built in or, if it has a command, with that.
type evaluator struct {
	name    string // of the score
	text    string // as it was given
	judge   check  // nil for a command
	command []string
}

// check judges an answer, and may give a reason.
type check func(a *answer) (ok bool, reason string, err error)

// builtin makes the evaluators that ask no model, from what follows their names.
var builtin = map[string]func(argument string) (check, error){
	"equal":     func(string) (check, error) { return isEqual, nil },
	"contains":  contains,
	"regex":     matches,
	"schema":    conforms,
	"tolerance": within,
	"tool":      callsTool,
	"latency":   isFast,
	"cost":      isCheap,
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
	if slices.Contains(experiment.Measured, e.name) {
		return e, errors.New("has the name of what is measured of every call; put another name in front")
	}
	kind, argument, _ := strings.Cut(e.text, ":")
	if make, known := builtin[kind]; known {
		e.name = cmp.Or(e.name, scoreNames[kind], kind)
		e.judge, err = make(argument)
		return e, err
	}

	e.command = strings.Fields(e.text)
	if e.name == "" || len(e.command) == 0 {
		return e, errors.New("is none of equal, contains, regex, schema, tolerance, tool, latency and cost; " +
			"a command needs the name of its score in front: NAME=COMMAND")
	}
	return e, nil
}

var errNoExpected = errors.New("the row has no expected value")

// expectedText returns what a row expects, a string without its quotes.
func (a *answer) expectedText() (string, error) {
	switch {
	case len(a.Expected) == 0 || string(a.Expected) == "null":
		return "", errNoExpected
	case a.Expected[0] == '"':
		return strings.TrimSpace(jsonscan.Unquote(a.Expected)), nil
	}
	return string(a.Expected), nil
}

// isEqual compares texts, or values if the expected one is JSON.
func isEqual(a *answer) (bool, string, error) {
	expected, err := a.expectedText()
	text := strings.TrimSpace(a.text)
	if err == nil && a.Expected[0] != '"' {
		var x, y any
		readable := json.Unmarshal(a.Expected, &x) == nil && json.Unmarshal([]byte(text), &y) == nil
		return readable && reflect.DeepEqual(x, y), "", nil
	}
	return text == expected, "", err
}

func contains(part string) (check, error) {
	return func(a *answer) (ok bool, _ string, err error) {
		wanted := part
		if wanted == "" {
			wanted, err = a.expectedText()
		}
		return strings.Contains(a.text, wanted), "", err
	}, nil
}

func matches(expression string) (check, error) {
	re, err := regexp.Compile(expression)
	return func(a *answer) (bool, string, error) { return re.MatchString(a.text), "", nil }, err
}

// conforms checks answers against the JSON schema in a file.
func conforms(path string) (check, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, fmt.Errorf("%s is not a JSON schema: %w", path, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%s is not a JSON schema: %w", path, err)
	}

	return func(a *answer) (bool, string, error) {
		var value any
		err := json.Unmarshal([]byte(a.text), &value)
		if err == nil {
			err = resolved.Validate(value)
		}
		if err != nil {
			return false, err.Error(), nil
		}
		return true, "", nil
	}, nil
}

func within(tolerance string) (check, error) {
	most, err := strconv.ParseFloat(tolerance, 64)
	return func(a *answer) (bool, string, error) {
		expected, err := a.expectedText()
		if err != nil {
			return false, "", err
		}
		wanted, err := strconv.ParseFloat(expected, 64)
		if err != nil {
			return false, "", fmt.Errorf("the expected value is not a number: %w", err)
		}
		got, err := strconv.ParseFloat(strings.TrimSpace(a.text), 64)
		if err != nil {
			return false, "The answer is not a number.", nil
		}
		return math.Abs(got-wanted) <= most, fmt.Sprintf("It is off by %g.", math.Abs(got-wanted)), nil
	}, err
}

// callsTool looks for a call of a tool: NAME, NAME {"argument": ...}, or what the row expects in this form.
func callsTool(wanted string) (check, error) {
	return func(a *answer) (_ bool, _ string, err error) {
		text := wanted
		if text == "" {
			text, err = a.expectedText()
		}
		name, arguments, _ := strings.Cut(text, " ")
		for _, m := range a.call.Output {
			for _, called := range m.ToolCalls {
				if called.Name == name && hasMembers(called.Arguments, arguments) {
					return true, "", err
				}
			}
		}
		return false, "", err
	}, nil
}

// hasMembers reports whether a JSON object has at least the members of another, which may be missing.
func hasMembers(object, wanted string) bool {
	var has, wants map[string]any
	_ = json.Unmarshal([]byte(object), &has)
	if strings.TrimSpace(wanted) != "" && json.Unmarshal([]byte(wanted), &wants) != nil {
		return false
	}
	for name, value := range wants {
		if !reflect.DeepEqual(has[name], value) {
			return false
		}
	}
	return true
}

func isFast(most string) (check, error) {
	bound, err := time.ParseDuration(most)
	return func(a *answer) (bool, string, error) { return a.latency <= bound, "", nil }, err
}

func isCheap(most string) (check, error) {
	bound, err := strconv.ParseFloat(most, 64)
	return func(a *answer) (bool, string, error) {
		if a.price == nil {
			return false, "", errors.New("the cost of the call is not known")
		}
		return *a.price <= bound, "", nil
	}, err
}

// judgement is the answer of an evaluator that is a command: members of a score.
type judgement struct {
	Value         json.RawMessage `json:"value"`
	Reason        string          `json:"reason,omitempty"`
	Author        string          `json:"author,omitempty"`
	AuthorVersion string          `json:"author_version,omitempty"`
	Source        string          `json:"source,omitempty"`
}

// score lets an evaluator judge an answer, and returns the score as it is logged.
func (e *evaluator) score(p *process, s step, a *answer) (json.RawMessage, error) {
	j := judgement{Author: e.text, Source: "code"}
	if e.judge != nil {
		ok, reason, err := e.judge(a)
		if err != nil {
			return nil, err
		}
		j.Value, j.Reason = json.RawMessage(strconv.FormatBool(ok)), reason
	} else {
		said, err := p.ask(s.ID, map[string]any{
			"id": s.ID, "row": a.row, "version": s.Version, "text": a.text, "request": s.Body,
		})
		j = judgement{Author: e.text}
		if err == nil {
			err = json.Unmarshal(said, &j)
		}
		if err == nil && len(j.Value) == 0 {
			err = errors.New("its answer has no value: " + shown(said))
		}
		if err != nil {
			return nil, err
		}
	}

	return json.Marshal(struct {
		wire.OfRequest
		Name string `json:"name"`
		judgement
	}{wire.OfRequest{RequestID: s.ID}, e.name, j})
}
