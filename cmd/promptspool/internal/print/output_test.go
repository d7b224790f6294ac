package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
	"pgregory.net/rapid"

	"promptspool/cmd/promptspool/internal/config"
)

// printed returns a table of these rows.
func printed(rows ...[]any) string {
	var b bytes.Buffer
	t := Table{Painter: Painter{Out: &b}}
	for _, r := range rows {
		t.Row(r...)
	}
	t.Head()
	return b.String()
}

func TestTables(t *testing.T) {
	equal(t, "table", printed([]any{"ID", "NAME"}, []any{1, "a"}, []any{22, "ü"}), "ID  NAME\n1   a\n22  ü\n")
	equal(t, "what drives a terminal",
		printed([]any{"a\x1b[31mb\tc\nd\re\u009bf\u202eg\x7fh\u200bi", "x"}), "a [31mb c d e f g h i  x\n")
	long := strings.Repeat("é", 80)
	equal(t, "a cell as long as it may be", printed([]any{"a", long}), "a  "+long+"\n")
	equal(t, "a longer one", printed([]any{"a", long + "é"}), "a  "+strings.Repeat("é", 79)+"…\n")
	equal(t, "a sentence", printed([]any{long + "é"}), long+"é\n")
	equal(t, "bytes that are no text", printed([]any{"a\xffb"}), "a\uFFFDb\n")
}

func TestAnEmptyListSaysSo(t *testing.T) {
	var b bytes.Buffer
	table := Table{Painter: Painter{Out: &b}}
	table.Head("ID", "NAME").Head()
	equal(t, "without rows", b.String(), "None.\n")
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

func TestItemsOfAList(t *testing.T) {
	for text, want := range map[string]string{
		`{"items":[1,{"a":2}],"total":2}`: `[1,{"a":2}]`,
		`[]`:                              `[]`,
		`{"a":[1]}`:                       `[{"a":[1]}]`,
	} {
		items, isList := itemsOf(json.RawMessage(text))
		got, err := json.Marshal(items)
		equal(t, text, []any{string(got), isList, err}, []any{want, !strings.Contains(text, "a\":["), nil})
	}
}

// A page may have no record with a value in a field that is left out when it is empty.
func TestFieldsOfATypeAreThere(t *testing.T) {
	type base struct {
		ID string `json:"id"`
	}
	type row struct {
		base
		User string `json:"user,omitempty"`
		Sum  int    `json:"-"`
	}
	type page struct {
		Total int    `json:"total"`
		Items []*row `json:"items"`
	}
	equal(t, "fields", fieldsOf(reflect.TypeOf(&page{})), []string{"id", "user"})
	equal(t, "of a map", fieldsOf(reflect.TypeOf(map[string]int{})), []string(nil))
}

func equal(t *testing.T, name string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// listOf runs a command that prints a list of two calls, with these flags.
func listOf(t *testing.T, flags ...string) (out, told string, err error) {
	t.Helper()
	var b, notes bytes.Buffer
	list := map[string]any{"next_cursor": "c1", "items": []any{
		map[string]any{"cost": 0.0000042, "id": "a,b", "tags": []string{"x"}},
		map[string]any{"id": "=1+1", "name": "é\n"},
	}}
	command := &cli.Command{
		Name:  "list",
		Flags: append(config.OutputFlags(), config.ColumnsFlag()),
		Action: func(c *cli.Context) error {
			return Output(c, list, func(t *Table) {
				t.Head("ID", "LAST USED")
				t.Row("a,b", "today")
				t.Row("All of it.")
			})
		},
	}
	app := &cli.App{Commands: []*cli.Command{command}, Writer: &b, ErrWriter: &notes}
	err = app.Run(append([]string{"promptspool", "list"}, flags...))
	return b.String(), notes.String(), err
}

func TestAListHasEveryForm(t *testing.T) {
	for _, tt := range []struct{ flags, want string }{
		{"", "ID   LAST USED\na,b  today\nAll of it.\n"},
		{"--columns last_used,id", "LAST USED  ID\ntoday      a,b\nAll of it.\n"},
		{"-o ndjson", `{"cost":0.0000042,"id":"a,b","tags":["x"]}` + "\n" + `{"id":"=1+1","name":"é\n"}` + "\n"},
		{"-o ndjson --columns name,id", `{"id":"a,b","name":null}` + "\n" + `{"id":"=1+1","name":"é\n"}` + "\n"},
		{"-o json --columns id", "[\n  {\n    \"id\": \"a,b\"\n  },\n  {\n    \"id\": \"=1+1\"\n  }\n]\n"},
		{"-o csv", "cost_usd,id,tags,name\n0.0000042,\"a,b\",\"[\"\"x\"\"]\",\n,'=1+1,,\"é\n\"\n"},
		{"-o csv --columns ID", "id\n\"a,b\"\n'=1+1\n"},
		{"-o csv --columns cost_usd,price", "cost_usd,cost_usd\n0.0000042,0.0000042\n,\n"},
		{"-o ndjson --columns cost_usd", `{"cost_usd":0.0000042}` + "\n" + `{"cost_usd":null}` + "\n"},
		{"--json name,id -o csv", "[\n  {\n    \"id\": \"a,b\",\n    \"name\": null\n  },\n  {\n" +
			"    \"id\": \"=1+1\",\n    \"name\": \"é\\n\"\n  }\n]\n"},
		{"--json id --jq .[].id", "a,b\n=1+1\n"},
		{"--jq .next_cursor,.items[0].tags,.items[1].cost", "c1\n[\"x\"]\nnull\n"},
		{"--jq .cost,1/3 -o ndjson", "0.0000042\n0.3333333333333333\nnull\n0.3333333333333333\n"},
	} {
		out, told, err := listOf(t, strings.Fields(tt.flags)...)
		more := regexp.MustCompile("csv|ndjson|json.*id").MatchString(tt.flags) // without the cursor
		if out != tt.want || err != nil || more != (told == "More: --cursor c1\n") {
			t.Errorf("%s: %v, told %q\n%s", tt.flags, err, told, cmp.Diff(tt.want, out))
		}
	}

	for flags, want := range map[string]string{
		"-o tabel":          `"tabel" is not one of table, json, ndjson, csv; did you mean table?`,
		"--columns idd":     `"idd" is not one of id, last_used; did you mean id?`,
		"-o csv --columns ": ``,
		"--json idd": `--json (or PROMPTSPOOL_JSON): ` +
			`"idd" is not one of cost_usd, id, tags, name; did you mean id?`,
		"--jq .[":       `--jq (or PROMPTSPOOL_JQ): ".[" is not a jq expression: unexpected EOF`,
		"--jq .items.a": `--jq: expected an object but got: array ([{"cost":0.0000042,"id":" ...])`,
		"-o csv --columns x,cots": `"x" is not one of cost_usd, id, tags, name` +
			"\n--columns (or PROMPTSPOOL_COLUMNS): " +
			`"cots" is not one of these; did you mean cost?`,
		"-o csv --columns tame": `"tame" is not one of cost_usd, id, tags, name; did you mean name or tags?`,
	} {
		out, _, err := listOf(t, strings.Split(flags, " ")...)
		if told := fmt.Sprint(err); (err == nil) != (want == "") || err != nil && out != "" ||
			!strings.HasSuffix(told, want) {
			t.Errorf("%s: %v, printed %q", flags, err, out)
		}
	}
}

func TestAnExpressionLosesNoDigitOfANumber(t *testing.T) {
	var b bytes.Buffer
	app := &cli.App{Writer: &b, Flags: config.OutputFlags(), Action: func(c *cli.Context) error {
		return Data(c, map[string]int64{"n": 9007199254740993})
	}}
	if err := app.Run([]string{"list", "--jq", ".n"}); err != nil {
		t.Fatal(err)
	}
	equal(t, "the number", b.String(), "9007199254740993\n")
}
