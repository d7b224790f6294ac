package api

import (
	"encoding/json"
	"testing"
)

// Clients see the same bytes as those of encoding/json.
func TestTheAnswerToAWriteIsAsEncodingJSONWritesIt(t *testing.T) {
	for _, message := range []string{"Request logged.", "Score recorded." + unverifiedNote, "a \"b\" \\ \n é"} {
		answer := trackAnswer{Success: true, Message: message, RequestID: "01890c3e-7c2b-7000-8000-000000000001"}
		want, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(answer.appendJSON(nil)) + "}"; got != string(want) {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}
