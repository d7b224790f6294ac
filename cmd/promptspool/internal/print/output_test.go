package print

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// printed returns a table of these rows.
func printed(rows ...[]any) string {
	var b bytes.Buffer
	t := newTable(&b, time.UTC)
	for _, r := range rows {
		t.Row(r...)
	}
	_ = t.Flush()
	return b.String()
}

func TestTables(t *testing.T) {
	equal(t, "table", printed([]any{"ID", "NAME"}, []any{1, "a"}, []any{22, "ü"}), "ID  NAME\n1   a\n22  ü\n")
	equal(t, "what drives a terminal",
		printed([]any{"a\x1b[31mb\tc\nd\re\u009bf\u202eg\x7fh\u200bi", "x"}), "a [31mb c d e f g h i  x\n")
	equal(t, "a cell as long as it may be", printed([]any{strings.Repeat("é", 80)}), strings.Repeat("é", 80)+"\n")
	equal(t, "a longer one", printed([]any{strings.Repeat("é", 81)}), strings.Repeat("é", 79)+"…\n")
	equal(t, "bytes that are no text", printed([]any{"a\xffb"}), "a\uFFFDb\n")
}

func TestDeadLettersThatWereDroppedShow(t *testing.T) {
	equal(t, "none dropped", DeadLetters(1200, 0), "1,200")
	equal(t, "some dropped", DeadLetters(0, 3), "0 (3 dropped)")
}

func TestJSONCannotDriveTheTerminal(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, map[string]string{"a": "\x1b\u009b\u202e\x7f<&>é\U000E0041"}); err != nil {
		t.Fatal(err)
	}
	equal(t, "JSON", b.String(), "{\n  \"a\": \"\\u001b\\u009b\\u202e\\u007f<&>é\\udb40\\udc41\"\n}\n")
	if err := JSON(&b, func() {}); err == nil {
		t.Error("a function was printed")
	}
}

func TestJSONIsPrintedAsItIs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := map[string]string{rapid.String().Draw(r, "name"): rapid.String().Draw(r, "value")}
		var b bytes.Buffer
		if err := JSON(&b, want); err != nil {
			r.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			r.Fatalf("%v in %s", err, b.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Errorf("(-want +got):\n%s", diff)
		}
		if strings.ContainsFunc(strings.ReplaceAll(b.String(), "\n", ""), DrivesTerminal) {
			r.Errorf("%q drives the terminal", b.String())
		}
	})
}

func equal(t *testing.T, name string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
