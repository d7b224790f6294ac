package print

import (
	"strings"
	"testing"
)

func TestLinesEndAtTheTerminalsEdge(t *testing.T) {
	table := func(width int, on bool) string {
		var out strings.Builder
		table := Table{Painter: Painter{Out: &out, styles: on, Width: width}}
		table.Head("NAME", ">N", "TEXT").Row(Styled("größe", Cyan), 7, Styled("a long text", Red))
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	equal(t, "no terminal", table(0, false), "NAME   N  TEXT\ngröße  7  a long text\n")
	equal(t, "wide enough", table(21, false), "NAME   N  TEXT\ngröße  7  a long text\n")
	equal(t, "narrow", table(15, false), "NAME   N  TEXT\ngröße  7  a lo…\n")
	equal(t, "very narrow", table(3, true), "\x1b[1mNA…\x1b[0m\n\x1b[36mgr…\x1b[0m\n")
	equal(t, "narrow, with colours", table(15, true),
		"\x1b[1mNAME\x1b[0m   \x1b[1mN\x1b[0m  \x1b[1mTEXT\x1b[0m\n"+
			"\x1b[36mgröße\x1b[0m  7  \x1b[31ma lo…\x1b[0m\n")
}

func TestALineBelowARowHasNoColumns(t *testing.T) {
	var out strings.Builder
	table := Table{Painter: Painter{Out: &out, styles: true, Width: 80}}
	table.Head("ID", "STATUS").Row("1", "SUCCESS")
	table.Under(Styled("Where is my ", Faint), Styled("re\x1bfund", Bold), Styled("?", Faint))
	table.Row("2", "ERROR")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	equal(t, "the line", out.String(), "\x1b[1mID\x1b[0m  \x1b[1mSTATUS\x1b[0m\n1   SUCCESS\n"+
		"  \x1b[2mWhere is my \x1b[0m\x1b[1mre fund\x1b[0m\x1b[2m?\x1b[0m\n2   ERROR\n")
}

func TestATextOfTwoHalvesShowsBoth(t *testing.T) {
	for _, tt := range []struct{ first, second, want string }{
		{"Hi", "Hello", "Hi → Hello"},
		{"Hi", "", "Hi"},
		{"", "Hello", " → Hello"},
		{"a long question", "a long answer", "a lo… → a l…"},
		{"Hi", "a long answer", "Hi → a long…"},
		{"a long question", "No", "a long… → No"},
		{"a long question", "", "a long ques…"},
	} {
		equal(t, tt.first+tt.second, Halves(tt.first, tt.second, 12), tt.want)
	}
}
