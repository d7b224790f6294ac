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
	"promptspool/registry/render/python"
)

// plan is llm_kwargs that were made once, with holes where the values of variables stand: a call of the same kind is answered by
// copying. Only what every value leaves the same is planned, see holed; all else is made anew each time.
//
//	{"model":"gpt-4o","messages":[{"role":"user","content":"Hello, I am [name]. [question]"}]}
type plan struct {
	of       planKey
	possible bool // else nothing follows
	holes    []hole
	rest     []byte // behind the last hole
	warnings []string
	bytes    int
}

// hole is a place for a value.
type hole struct {
	before []byte // JSON between the hole before and this one
	name   string // of the variable
}

// planKey is a kind of call: without overrides, for a provider and a model, with variables or without.
type planKey struct {
	provider, model string
	filled          bool
}

// plansMax is how many plans one Prepared keeps; further kinds of calls are made anew each time.
const plansMax = 4

// plan finds the plan for a kind of call, or makes it; nil if there is none.
func (p *Prepared) plan(k planKey) *plan {
	pl := find(p.plans.Load(), k)
	if pl == nil {
		pl = p.addPlan(k)
	}
	if pl == nil || !pl.possible {
		return nil
	}
	return pl
}

func find(plans *[]*plan, k planKey) *plan {
	if plans != nil {
		for _, pl := range *plans {
			if pl.of == k {
				return pl
			}
		}
	}
	return nil
}

// addPlan makes a plan and keeps it, as long as there is room. That none is possible is kept as well.
func (p *Prepared) addPlan(k planKey) *plan {
	p.planning.Lock()
	defer p.planning.Unlock()
	var plans []*plan
	if known := p.plans.Load(); known != nil {
		plans = *known
	}
	if pl := find(&plans, k); pl != nil || len(plans) == plansMax {
		return pl
	}
	k.provider, k.model = strings.Clone(k.provider), strings.Clone(k.model)
	pl := p.makePlan(k)
	if p.planRoom -= pl.bytes; p.planRoom < 0 {
		p.planRoom += pl.bytes
		pl = &plan{of: k}
	}
	plans = append(slices.Clip(plans), pl) // those who read have the slice before
	p.plans.Store(&plans)
	return pl
}

func (p *Prepared) makePlan(k planKey) *plan {
	prompt, names, ok := p.prompt, []string(nil), true
	if k.filled {
		prompt, names, ok = holed(p.prompt)
	}
	if !ok {
		return &plan{of: k}
	}
	kwargs, warnings, err := provider.Kwargs(k.provider, p.model, prompt, k.model, nil)
	if err != nil {
		return &plan{of: k}
	}
	pl := &plan{of: k, warnings: slices.Clip(warnings), bytes: len(kwargs) + 64*len(names)}
	pl.possible = pl.cut(kwargs, names)
	return pl
}

// A hole is marked by the number of its variable between two characters that stand for nothing, and that JSON leaves as they are.
const (
	holeBegin = "\ue000"
	holeEnd   = "\ue001"
)

// holed is a prompt with marks in the places of its variables, whose names it returns in the order of the marks. It is not ok if the
// values may decide on more than the text in their places: where messages or images come from variables; where values are formatted,
// or missing ones in their paths are to be named; where a text that is empty, or JSON, is told in another way than others are.
func holed(p *prompt.Prompt) (marked *prompt.Prompt, names []string, ok bool) {
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
			if !isFormat || b.Variable != "" || b.Kind != "text" || m.Role == "tool" || m.Role == "function" {
				return nil, nil, false
			}
			if b.Text, names, ok = f.Marked(holeBegin, holeEnd, names); !ok {
				return nil, nil, false
			}
		}
	}
	return &out, names, true
}

// cut takes the arguments apart at their marks. It says false if those are not there once each: some text had them already.
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
		seen[n] = true
		pl.holes = append(pl.holes, hole{before, names[n]})
		pl.rest = rest
	}
	return !bytes.Contains(pl.rest, []byte(holeBegin))
}

// fill writes the values into the holes. It says false where values are to be judged: one that is missing, an object or a list, or more
// text than there may be.
func (pl *plan) fill(c Call) (json.RawMessage, bool) {
	var b []byte
	if c.Room != nil {
		b = (*c.Room)[:0]
	}
	b = slices.Grow(b, pl.bytes+256)
	for i := range pl.holes {
		h := &pl.holes[i]
		v, ok := c.Variables[h.name]
		if !ok || v[0] == '{' || v[0] == '[' || len(b)+len(v) > language.OutputBytesMax {
			return nil, false
		}
		b = append(b, h.before...)
		switch {
		case v[0] != '"':
			b = python.AppendScalar(b, v) // in which nothing is to escape
		case bytes.IndexByte(v, '\\') < 0:
			b = append(b, v[1:len(v)-1]...) // as it came, it is JSON
		default:
			b = jsonscan.AppendEscaped(b, jsonscan.Unquote(v))
		}
	}
	if len(b)+len(pl.rest) > language.OutputBytesMax {
		return nil, false
	}
	b = append(b, pl.rest...)
	if c.Room != nil {
		*c.Room = b
	}
	return b, true
}
