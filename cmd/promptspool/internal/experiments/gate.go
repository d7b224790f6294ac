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

// gate is what a metric of a version must be. Its bound may be the base's metric, with a number added to it,
// subtracted or multiplied.
type gate struct {
	text, metric, compare string
	ofBase                bool
	operator              string
	number                float64
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
	missing := 0
	for _, p := range c.Pairs {
		failed := p.B != nil && experiment.Failed(p.B)
		_, known := experiment.Value(p.B, g.metric)
		if failed && !failuresBound || !failed && !known {
			missing++
		}
	}
	var m wire.ComparedMetric
	at := slices.IndexFunc(c.Metrics, func(m wire.ComparedMetric) bool {
		return m.Metric == g.metric || m.Name == g.metric
	})
	if at >= 0 {
		m = c.Metrics[at]
	}

	bound := g.number
	switch {
	case missing > 0:
		o.Reason = fmt.Sprintf("%d of %d rows failed or have no %s", missing, len(c.Pairs), g.metric)
		return o
	case m.CountB == 0, g.ofBase && m.CountA == 0:
		o.Reason = fmt.Sprintf("no row has %s in both versions", g.metric)
		return o
	case g.operator == "-":
		bound = m.A - g.number
	case g.operator == "*":
		bound = m.A * g.number
	case g.ofBase:
		bound = m.A + g.number
	}
	// Sums of many values are not exact.
	above := math.Round((m.B-bound)*1e9) / 1e9
	o.Passed = map[string]bool{">=": above >= 0, "<=": above <= 0, ">": above > 0, "<": above < 0}[g.compare]
	o.Reason = fmt.Sprintf("%s is %.4g, the bound %.4g", g.metric, m.B, bound)

	return o
}
