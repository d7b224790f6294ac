package requests

import (
	"testing"

	"promptspool/api/filterline"
)

func TestAKeyThatIsAlmostAFieldIsAnsweredWithIt(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "No requests.",
		"status:error":         "No requests match these filters.",
		"cost:>1 statsu:error": "No requests match these filters. Did you mean status in place of statsu?",
		"wholly-unknown:1":     "No requests match these filters.",
	} {
		line, err := filterline.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := unmatched(line, "requests"); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
