package seed

import (
	"fmt"
	"time"
)

// template is a template of the bot. Its newest version is the longest: each adds a rule.
type template struct {
	name, model string
	text        string
	versions    int
}

var templates = []template{
	{"support/triage", "gpt-5-mini", "Read the customer's first message. Answer with JSON only: " +
		"{\"topic\": ..., \"urgency\": 1 to 3, \"language\": ...}.", 5},
	{"support/reply", "claude-sonnet-4-5", "You are the support agent of {{customer}}. Be brief, kind and exact.", 8},
	{"support/agent", "gpt-5.1", "You are the support agent of {{customer}}. Look up parcels before you answer.", 6},
	{"support/summarize", "gemini-2.5-flash", "Summarize the conversation in one sentence for the next agent.", 4},
	{"support/handbook", "gemini-2.5-pro", "Answer from the handbook below, and name the section you used.", 7},
	{"support/photo", "gpt-4.1-mini", "Describe the damage in the customer's photo in one sentence.", 3},
	{"mail/translate", "mistral-medium-latest", "Translate the mail to English. Keep names and numbers.", 4},
	{"mail/sentiment", "gpt-4.1-mini", "Rate the tone of the mail from -1 to 1. Answer with JSON only.", 3},
	{"quality/tone", "claude-haiku-4-5", "Does the reply sound kind? Answer yes or no, and say why.", 5},
	{"shop/description", "gpt-5.1", "Write a product description of at most 60 words.", 6},
	{"shop/search-terms", "gemini-2.5-flash", "List five search terms for the product, one a line.", 3},
	{"ops/weekly-digest", "claude-sonnet-4-5", "Summarize the week's tickets as a table, then name the cause.", 4},
}

// rules are what versions after the first add to a template's text.
var rules = []string{
	"Never promise a discount.",
	"Answer in the customer's language.",
	"Use at most three sentences.",
	"Do not mention competitors.",
	"Name the order number if there is one.",
	"Say so if you do not know.",
	"Close with the agent's first name.",
}

// customerSlot stands in texts that name the customer.
const customerSlot = "{{customer}}"

// textOf returns the text of a version.
func (t template) textOf(version int) string {
	text := t.text
	for _, rule := range rules[:version-1] {
		text += "\n" + rule
	}

	return text
}

// releases are all versions in the order in which they were published.
func releases() (all []Release) {
	for _, t := range templates {
		for version := 1; version <= t.versions; version++ {
			message := "First version"
			if version > 1 {
				message = rules[version-2]
			}
			labels := []string{}
			switch version {
			case t.versions - 1:
				labels = append(labels, "prod")
			case t.versions:
				labels = append(labels, "staging")
			}
			all = append(all, t.release(version, message, labels))
		}
	}

	return all
}

func (t template) release(version int, message string, labels []string) Release {
	m := named(t.model)

	return Release{
		"prompt_template": map[string]any{"prompt_name": t.name, "tags": []string{"bot"}},
		"prompt_version": map[string]any{
			"commit_message": message,
			"prompt_template": map[string]any{"messages": list{
				map[string]any{"role": "system", "content": t.textOf(version), "template_format": "jinja2"},
				map[string]any{"role": "user", "content": "{{message}}", "template_format": "jinja2"},
			}},
			"metadata": map[string]any{"model": map[string]any{
				"provider": m.provider, "name": m.name, "parameters": map[string]any{"temperature": 0.3},
			}},
		},
		"release_labels": labels,
	}
}

// template returns a template by its name.
func (m *maker) template(name string) template {
	for _, t := range templates {
		if t.name == name {
			return t
		}
	}
	panic(fmt.Sprintf("seed: there is no template %s", name))
}

// version draws the version that an app used at a time: newer ones came later, and for a while each ran beside the one
// before.
func (m *maker) version(t template, at time.Time) int {
	age := float64(m.now.Sub(at)) / float64(30*day)
	// The newest has run for long enough to be compared with the one before.
	newest := min(1+int((1-age)*float64(t.versions)+0.8), t.versions)

	return max(newest-m.IntN(2), 1)
}
