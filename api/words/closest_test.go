package words_test

import (
	"slices"
	"testing"

	"promptspool/api/words"
)

func TestTheClosestValuesComeFirst(t *testing.T) {
	for _, c := range []struct {
		value  string
		values []string
		want   []string
	}{
		{"error", []string{"SUCCESS", "ERROR", "WARNING"}, []string{"ERROR"}},
		{"prdo", []string{"canary", "prod", "dev"}, []string{"prod"}},
		{"prodd", []string{"canary", "prod", "Prodd", "prodder"}, []string{"Prodd", "prod", "prodder"}},
		{"bto", []string{"bot", "web", "to"}, []string{"bot", "to"}},
		{"gpt-4o", []string{"claude", "gpt-4o-mini", "gpt-4", "gpt-5"}, []string{"gpt-4o-mini", "gpt-4", "gpt-5"}},
		{"größe", []string{"grosse", "grösse", "Größen"}, []string{"Größen", "grösse"}},
		{"gpt4", []string{"claude-4", "gpt-4o-mini", "gpt-5"}, []string{"gpt-4o-mini", "gpt-5"}},
		{"session id", []string{"session_id", "session"}, []string{"session_id", "session"}},
		{"--", []string{"openai"}, []string{}},
		{"x", []string{"openai", "anthropic"}, []string{}},
	} {
		if got := words.Closest(c.value, c.values); !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%s: %q, want %q", c.value, got, c.want)
		}
	}
}
