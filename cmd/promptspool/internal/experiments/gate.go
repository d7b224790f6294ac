package experiments

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"promptspool/api/experiment"
	"promptspool/api/wire"
)

// gate is what a metric of a version must be, in place of which another version's may be named.
type gate struct {
	text     string
	metric   string
	compare  string
	ofBase   bool
	operator string // between the base's metric and the number
	number   float64
}

var gateForm = regexp.MustCompile(
	`^\s*([\pL_][\pL\pN_.-]*)\s*(>=|<=|>|<)\s*(?:(base)(?:\s*([-+*])\s*([0-9.]+))?|(-?[0-9.]+))\s*$`)

func parseGate(text string) (g gate, err error) {
	m := gateForm.FindStringSubmatch(text)
	if m == nil {
		return g, errors.New("is not METRIC >= NUMBER, or METRIC >= base - NUMBER; " +
			"also with <=, < and >, and with + and *")
	}
	g = gate{text: text, metric: m[1], compare: m[2], ofBase: m[3] != "", operator: m[4]}
	if digits := m[5] + m[6]; digits != "" {
		g.number, err = strconv.ParseFloat(digits, 64)
	}
	return g, err
}

// bound returns what the metric is compared with.
func (g *gate) bound(base float64) float64 {
	switch {
	case !g.ofBase:
		return g.number
	case g.operator == "-":
		return base - g.number
	case g.operator == "*":
		return base * g.number
	}
	return base + g.number
}

// outcome is what became of a gate.
type outcome struct {
	Gate   string `json:"gate"`
	Passed bool   `json:"passed"`
	Reason string `json:"reason"`
}

// judge compares a metric with its bound. A row without the metric fails the gate. A call that failed does
// so as well, unless another gate bounds the failures.
func (g *gate) judge(c *experiment.Comparison, failuresBound bool) outcome {
	o := outcome{Gate: g.text}
	unknown, failed := 0, 0
	for _, p := range c.Pairs {
		_, known := experiment.Value(p.B, g.metric)
		switch {
		case p.B == nil || experiment.Failed(p.B):
			failed++
		case !known:
			unknown++
		}
	}
	at := slices.IndexFunc(c.Metrics, func(m wire.ComparedMetric) bool {
		return m.Metric == g.metric || m.Name == g.metric
	})
	if at < 0 {
		unknown = len(c.Pairs)
	}
	switch {
	case unknown > 0:
		o.Reason = fmt.Sprintf("%d of %d rows have no %s", unknown, len(c.Pairs), g.metric)
		return o
	case failed > 0 && !failuresBound:
		o.Reason = fmt.Sprintf("%d of %d calls failed; a gate such as 'errors <= 0.01' would allow for some",
			failed, len(c.Pairs))
		return o
	case g.ofBase && c.Metrics[at].CountA == 0:
		o.Reason = "the base has no " + g.metric
		return o
	}

	m := c.Metrics[at]
	bound := g.bound(m.A)
	// Sums of many values are not exact.
	above := math.Round((m.B-bound)*1e9) / 1e9
	o.Passed = map[string]bool{">=": above >= 0, "<=": above <= 0, ">": above > 0, "<": above < 0}[g.compare]
	o.Reason = fmt.Sprintf("%s is %.4g, the bound %.4g", g.metric, m.B, bound)

	return o
}
