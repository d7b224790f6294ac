package filterline_test

import (
	"testing"

	"promptspool/api/filterline"
)

func TestWhatIsBeingTyped(t *testing.T) {
	for _, c := range []struct{ head, kept, prefix, key string }{
		{"", "", "", ""},
		{"sta", "", "sta", ""},
		{"tag:a -sta", "tag:a -", "sta", ""},
		{"model:", "model:", "", "model"},
		{"a -status:err", "a -status:", "err", "status"},
		{"tag:(a or b", "tag:(a or ", "b", "tag"},
		{"tag:(a or ", "tag:(a or ", "", "tag"},
		{"tag:(a, b", "tag:(a, ", "b", "tag"},
		{"tag:(", "tag:(", "", "tag"},
		{"tag:(a or b) mo", "tag:(a or b) ", "mo", ""},
		{`person:"a b`, "person:", "a b", "metadata"},
		{`"a b: c" mo`, `"a b: c" `, "mo", ""},
		{`metadata."a b":c`, `metadata."a b":`, "c", "metadata"},
		{"score.hel", "", "hel", "score"},
		{"time:>=yes", "time:>=", "yes", "time"},
	} {
		got := filterline.TypingAt(c.head)
		key := ""
		if got.Field != nil {
			key = got.Field.Name
		}
		if got.Kept != c.kept || got.Prefix != c.prefix || key != c.key {
			t.Errorf("%q is %q of %q behind %q, want %q of %q behind %q",
				c.head, got.Prefix, key, got.Kept, c.prefix, c.key, c.kept)
		}
	}

	// What completes a line is a line, and in its place.
	for head, want := range map[string]string{
		"tag:(a or b": `tag:(a or "b, c"`, `user:"a b`: `user:"b, c"`,
	} {
		typing := filterline.TypingAt(head)
		text, _ := typing.Offered(filterline.Value{Text: "b, c", Quoted: true})
		if got := typing.Kept + text; got != want {
			t.Errorf("%s is completed to %s, want %s", head, got, want)
		}
	}
}

// What follows an @ is a version or a label of the template in front of it, unless it is part of a name.
func TestASelectorIsTypedBehindATemplate(t *testing.T) {
	for head, want := range map[string]string{
		"template:support/triage@": "support/triage template:support/triage@3",
		"template:(a or b@p":       "b template:(a or b@3",
		"template:a":               "",
		"template:@":               "",
		`template:"a b@`:           "", // in quotes it is a part of the name
		"model:a@":                 "",
		"a@":                       "",
	} {
		typing := filterline.TypingAt(head)
		name, _, ok := typing.Selector()
		got := ""
		if ok {
			text, line := typing.Offered(filterline.Value{Text: name + "@3"})
			got = name + " " + typing.Kept + text
			if again, err := filterline.Parse(line.String()); err != nil || again.String() != "template:"+name+"@3" {
				t.Errorf("%s is counted by %s, %v", head, line, err)
			}
		}
		if got != want {
			t.Errorf("%s is completed to %q, want %q", head, got, want)
		}
	}
}
