package templates

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/calls"
)

// said returns messages of texts such as "user: Hello".
func said(texts ...string) (messages []calls.Message) {
	for _, t := range texts {
		role, text, _ := strings.Cut(t, ": ")
		messages = append(messages, calls.Message{Role: role, Parts: []calls.Part{{Kind: "text", Text: text}}})
	}

	return messages
}

// A template of two messages stands for those two of a conversation, however long that has become.
func TestABacktestComparesTheTemplatesOwnMessages(t *testing.T) {
	talk := []string{"system: Be brief.", "user: Hi", "assistant: Hello", "user: Where is it?", "assistant: track",
		"tool: in Oslo"}
	for name, c := range map[string]struct{ sent, template, want []string }{
		"as it was sent": {talk, []string{"system: Be brief.", "user: Where is it?"},
			[]string{"system: Be brief.", "user: Where is it?"}},
		"other instructions": {talk, []string{"system: Be kind.", "user: Where is it?"},
			[]string{"system: Be brief.", "user: Where is it?"}},
		"another question": {talk, []string{"system: Be brief.", "user: Dear bot, where is it?"},
			[]string{"system: Be brief.", "user: Where is it?"}},
		"an example in front": {talk, []string{"system: Be brief.", "user: Hi", "assistant: Hello", "user: Why?"},
			[]string{"system: Be brief.", "user: Hi", "assistant: Hello", "user: Where is it?"}},
		"instructions alone": {talk, []string{"system: Be kind."}, []string{"system: Be brief."}},
		"two of them": {append([]string{"system: Rules."}, talk...), []string{"system: Be kind.", "user: Why?"},
			[]string{"system: Rules.", "user: Where is it?"}},
		"none of them": {talk, []string{"developer: Be kind."}, talk},
		"shorter":      {talk[:2], []string{"system: a", "user: b", "user: c"}, talk[:2]},
	} {
		got := ownMessages(said(c.sent...), said(c.template...))
		if diff := cmp.Diff(said(c.want...), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
