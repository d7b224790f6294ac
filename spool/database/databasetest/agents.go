package databasetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// agentCalls are the calls of the recorded sessions of coding agents: the model, the tokens that went in
// and came out, the reported cost, what came out, and its status.
var agentCalls = map[string][]string{
	"claude-code": {
		"claude-haiku-5-5 387+18 $0.000477  SUCCESS",
		"claude-sonnet-5 10516+61 $0.0086811 Let me count them. SUCCESS",
		"claude-sonnet-5 10613+14 $0.00373 main.go has 42 lines. SUCCESS",
		"claude-sonnet-5    ERROR",
	},
	"codex": {
		"gpt-5.6-sol 1000+50   SUCCESS",
		"gpt-5.6-sol 1090+14   SUCCESS",
		"gpt-5.6-sol    ERROR",
	},
	"gemini-cli": {
		"gemini-2.5-pro 7420+117  Let me count them. SUCCESS",
		"gemini-2.5-pro 7530+8  main.go has 42 lines. SUCCESS",
		"gemini-2.5-pro    ERROR",
	},
}

func agentSessions(t *testing.T, open Open) {
	s, _ := open(t)
	for agent, want := range agentCalls {
		var events []archive.Event
		for i, e := range slices.Concat(recorded(t, agent), recorded(t, agent+"-logs")) {
			e.ID = ID(i)
			events = append(events, Decode(t, e, Start))
		}
		rapid.Check(t, func(t *rapid.T) {
			account := wire.NewID()
			for _, batch := range Batches(t, events) {
				apply(t, s, account, batch...)
			}

			var got []string
			for _, r := range search(t, s, account, wire.Search{}).Rows {
				tokens, cost, answer := "", "", r.OutputExcerpt
				if r.InputTokens != nil {
					tokens = fmt.Sprintf("%d+%d", *r.InputTokens, *r.OutputTokens)
				}
				if r.Price != nil {
					cost = fmt.Sprintf("$%g", *r.Price)
				}
				if r.Status == "ERROR" {
					answer = ""
				}
				got = append(got, fmt.Sprintf("%s %s %s %s %s", r.Engine, tokens, cost, answer, r.Status))
			}
			slices.Reverse(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", agent, diff)
			}
		})
	}
}
