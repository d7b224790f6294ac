package render

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire/jsonscan"
	"promptspool/registry/render/fstring"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/provider"
)

// plan is llm_kwargs that were made once, with holes for the values of variables. Copying
// it answers a call of the same kind. Parts that depend on values in any other way are
// not planned, but made again each time: see withHoles.
//
//	{"model":"gpt-4o","messages":[{"role":"user","content":"Hello, I am [name]. [question]"}]}
type plan struct {
	key      planKey
	possible bool // otherwise what follows is unset
	holes    []hole
	rest     []byte // after the last hole
	warnings []string
	bytes    int
}

// hole is a place for a value.
type hole struct {
	before []byte // JSON between the previous hole and this one
	name   string // of the variable
}

// planKey is a kind of call without overrides.
type planKey struct {
	provider, model string
	filled          bool // with variables
}

// plansMax bounds the plans of one Prepared. Further kinds of calls are answered without
// a plan.
const plansMax = 4

// plan finds the plan for a kind of call, or makes it; nil if there is none.
func (p *Prepared) plan(k planKey) *plan {
	pl := findPlan(p.plans.Load(), k)
	if pl == nil {
		pl = p.addPlan(k)
	}
	// A plan that is not possible is kept too, so that it
	// is not tried again for each call.
	if pl == nil || !pl.possible {
		return nil
	}

	return pl
}

func findPlan(plans *[]*plan, k planKey) *plan {
	if plans == nil {
		return nil
	}

	for _, pl := range *plans {
		if pl.key == k {
			return pl
		}
	}
	return nil
}

// addPlan makes a plan and keeps it while there is space. It also keeps the fact that none
// is possible.
func (p *Prepared) addPlan(k planKey) *plan {
	p.planning.Lock()
	defer p.planning.Unlock()

	var plans []*plan
	if known := p.plans.Load(); known != nil {
		plans = *known
	}
	if pl := findPlan(&plans, k); pl != nil || len(plans) == plansMax {
		// Another call has added it, or there is no place.
		return pl
	}

	// The caller owns these strings, and may use their memory again.
	k.provider, k.model = strings.Clone(k.provider), strings.Clone(k.model)
	pl := p.makePlan(k)
	// Too large to keep: its absence is kept instead.
	if p.planSpace -= pl.bytes; p.planSpace < 0 {
		p.planSpace += pl.bytes
		pl = &plan{key: k}
	}

	// A copy: readers have the old slice.
	plans = append(slices.Clip(plans), pl)
	p.plans.Store(&plans)

	return pl
}

func (p *Prepared) makePlan(k planKey) *plan {
	filled, names, ok := p.prompt, []string(nil), true
	if k.filled {
		filled, names, ok = withHoles(p.prompt)
	}
	if !ok {
		return &plan{key: k}
	}
	kwargs, warnings, err := provider.Kwargs(k.provider, p.model, filled, k.model, nil)
	if err != nil {
		return &plan{key: k}
	}

	pl := &plan{
		key:      k,
		warnings: slices.Clip(warnings),
		bytes:    len(kwargs) + 64*len(names),
	}
	pl.possible = pl.cut(kwargs, names)

	return pl
}

// A hole is marked by the number of its variable between two characters without a
// meaning, which JSON leaves as they are.
const (
	holeBegin = "\ue000"
	holeEnd   = "\ue001"
)

// withHoles returns a prompt with marks in the places of its variables, and their names
// in the order of the marks.
//
// ok is false if values may decide on more than the text in their places: if messages or
// images come from variables; if values are formatted, or reached by a path whose missing
// steps must be reported; if an empty text, or one that is JSON, is written differently
// from others.
func withHoles(p *prompt.Prompt) (marked *prompt.Prompt, names []string, ok bool) {
	if !p.Chat {
		return nil, nil, false
	}

	out := *p
	out.Messages = slices.Clone(p.Messages)
	for i := range out.Messages {
		m := &out.Messages[i]
		if m.Role == "placeholder" {
			return nil, nil, false
		}

		m.Content = slices.Clone(m.Content)
		for j := range m.Content {
			b := &m.Content[j]
			if b.Template == nil && b.Fault == nil && b.Variable == "" {
				continue
			}
			f, isFormat := b.Template.(*fstring.Format)
			isResult := m.Role == "tool" || m.Role == "function"
			if !isFormat || b.Variable != "" || b.Kind != "text" || isResult {
				return nil, nil, false
			}
			b.Text, names, ok = f.Marked(holeBegin, holeEnd, names)
			if !ok {
				return nil, nil, false
			}
		}
	}

	return &out, names, true
}

// cut divides the arguments at their marks. It returns false if they do not appear
// exactly once each, because a text contained such marks already.
func (pl *plan) cut(kwargs []byte, names []string) bool {
	seen := make([]bool, len(names))
	pl.rest = kwargs
	for range names {
		before, behind, found := bytes.Cut(pl.rest, []byte(holeBegin))
		number, rest, ended := bytes.Cut(behind, []byte(holeEnd))
		n, err := strconv.Atoi(string(number))
		if !found || !ended || err != nil || n < 0 || n >= len(names) || seen[n] {
			return false
		}

		// The order in the arguments may differ from that in the prompt.
		seen[n] = true
		pl.holes = append(pl.holes, hole{before, names[n]})
		pl.rest = rest
	}

	return !bytes.Contains(pl.rest, []byte(holeBegin))
}

// fill writes the values into the holes. It returns false if a value needs judging: it is
// missing, it is an object or an array, or the text becomes too long.
func (pl *plan) fill(c Call) (json.RawMessage, bool) {
	var b []byte
	if c.Buffer != nil {
		b = (*c.Buffer)[:0]
	}
	b = slices.Grow(b, pl.bytes+256)

	for i := range pl.holes {
		h := &pl.holes[i]
		v, ok := c.Variables[h.name]
		// Nothing that was written goes out then: the call
		// is made again from the beginning.
		if !ok || v[0] == '{' || v[0] == '[' || len(b)+len(v) > language.OutputBytesMax {
			return nil, false
		}

		b = append(b, h.before...)
		switch {
		case v[0] != '"':
			// It contains nothing to escape.
			b = language.AppendScalar(b, v)
		case bytes.IndexByte(v, '\\') < 0:
			// It is JSON as it came.
			b = append(b, v[1:len(v)-1]...)
		default:
			b = jsonscan.AppendEscaped(b, jsonscan.Unquote(v))
		}
	}
	if len(b)+len(pl.rest) > language.OutputBytesMax {
		return nil, false
	}

	b = append(b, pl.rest...)
	if c.Buffer != nil {
		*c.Buffer = b
	}

	return b, true
}
