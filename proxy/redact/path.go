package redact

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// step is one part of a path: a member's name or an index, at any depth if it is deep.
type step struct {
	name  string
	index int  // -1 for a name
	any   bool // every name and index
	deep  bool
}

// state is the progress along a path: its rule, and the next step.
type state struct{ rule, step int }

// pathStep matches a step of a path, in a part of RFC 9535: .name ..name .* [*] [3]
// ['name'].
var pathStep = regexp.MustCompile(`^(?:(\.\.?)(\*|[^.\[\]'"*\s]+)|\[(\*|\d+|'[^']+'|"[^"]+")\])`)

// parsePath reads a path. A leading $. may be left out.
func parsePath(path string) ([]step, error) {
	wrong := func(rest string) error {
		return fmt.Errorf("the path %q has a syntax error at %q; "+
			"write it like kwargs.messages[*].content, metadata.* or ..password", path, rest)
	}

	rest := strings.TrimPrefix(path, "$")
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}

	var steps []step
	for rest != "" {
		m := pathStep.FindStringSubmatch(rest)
		// Each step may be a separate state at every member of a body: their number is
		// bounded.
		if m == nil || len(steps) == 32 {
			return nil, wrong(rest)
		}
		s := step{name: m[2], index: -1, deep: m[1] == ".."}
		if m[3] != "" {
			s.name = strings.Trim(m[3], `'"`)
			if n, err := strconv.Atoi(m[3]); err == nil {
				s.index = n
			}
		}
		s.any = m[2] == "*" || m[3] == "*"
		steps = append(steps, s)
		rest = rest[len(m[0]):]
	}

	switch {
	case len(steps) == 0:
		return nil, wrong(path)
	case len(steps) == 1 && kept[steps[0].name] && !steps[0].deep:
		return nil, fmt.Errorf("the server needs %s as it is; it cannot be redacted", steps[0].name)
	}

	return steps, nil
}

// step follows all paths into one child. It returns the states there, and the action of
// the first rule that ends there, or "".
func (w *walker) step(states []state, object bool, name []byte, index int) (next []state, action string) {
	follow := func(s state) {
		// Deep steps reach the same state in many ways.
		if !slices.Contains(next, s) {
			next = append(next, s)
		}
	}

	for _, s := range states {
		rule := &w.r.paths[s.rule]
		at := rule.steps[s.step]
		// A deep step may match further down as well, also below a match.
		if at.deep {
			follow(s)
		}

		matches := at.any || !object && at.index == index || object && at.index < 0 && at.name == string(name)
		if !matches {
			continue
		}

		// Of several rules that end here the first one acts, as they are written.
		if s.step+1 < len(rule.steps) {
			follow(state{s.rule, s.step + 1})
		} else if action == "" {
			action = rule.action
		}
	}

	return next, action
}
