package seed

import (
	"math"

	"promptspool/api/wire"
)

var (
	timeout = &failure{
		"PROVIDER_TIMEOUT", "Request timed out after 30 s.",
		map[string]any{},
	}
	overloaded = &failure{
		"PROVIDER_ERROR", "Error code: 529 - Overloaded",
		map[string]any{"type": "error", "error": map[string]any{"type": "overloaded_error", "message": "Overloaded"}},
	}
	failures = []*failure{
		timeout,
		{
			"PROVIDER_RATE_LIMIT", "Rate limit reached for requests per minute. Try again in 12 s.",
			map[string]any{"error": map[string]any{
				"type": "requests", "code": "rate_limit_exceeded",
				"message": "Rate limit reached for requests per minute. Try again in 12 s.",
			}},
		},
		{
			"PROVIDER_QUOTA_LIMIT", "You exceeded your current quota, please check your plan and billing details.",
			map[string]any{"error": map[string]any{
				"type": "insufficient_quota", "message": "You exceeded your quota.",
			}},
		},
		{
			"UNKNOWN_ERROR", "json: cannot unmarshal string into Go struct field Verdict.urgency of type int",
			map[string]any{},
		},
	}
)

// fail lets calls fail by chance until Failed have.
func (m *maker) fail() {
	failed := 0
	for _, c := range m.calls {
		if c.failure != nil {
			failed++
		}
	}

	for failed < Failed {
		c := m.calls[m.IntN(len(m.calls))]
		if c.fixed || c.failure != nil || c.metadata["user_id"] == TalkUser {
			continue
		}
		c.failure = failures[m.IntN(len(failures))]
		failed++
	}
}

// rate scores calls: grounded and helpfulness of replies, tone, and what customers said (csat). Newer versions do a
// little better, so that neighbours are hard to tell apart.
func (m *maker) rate() {
	for _, c := range m.calls {
		if c.failure != nil {
			continue
		}
		version := float64(c.version)
		switch c.template {
		case "support/reply":
			m.score(c, "grounded", 2, 70+version*2.2, 7)
			m.score(c, "helpfulness", 2, 64+version*1.5, 12)
			m.score(c, "csat", 6, 60+version*3, 25)
		case "support/agent", "support/handbook":
			m.score(c, "grounded", 3, 78+version, 9)
		case "quality/tone", "mail/translate":
			m.score(c, "tone", 4, 80, 10)
		}
	}
}

// score scores one of so many calls, around a mean.
func (m *maker) score(c *call, name string, oneOf int, mean, spread float64) {
	if m.IntN(oneOf) > 0 {
		return
	}
	value := math.Round(mean + m.NormFloat64()*spread)
	c.scores = append(c.scores, wire.IntegerScore(name, int(min(max(value, 0), 100))))
}
