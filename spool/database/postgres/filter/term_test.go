package filter

import (
	"testing"

	"promptspool/spool/archive/rowcode"
)

// The numbers are hashed into what is stored: with another one, no record of before is found.
func TestKindsHaveTheNumbersOfTheFirstRelease(t *testing.T) {
	taken := map[kind]string{}
	take := func(k, want kind, name string) {
		if other := taken[k]; k != want || other != "" {
			t.Errorf("%s has the number %d, not %d (that of %q)", name, k, want, other)
		}
		taken[k] = name
	}
	for i, name := range []string{"function", "model", "provider", "status", "sidecar", "template", "version", "label",
		"tags", "groups", "metadata", "scores"} {
		take(kindOf(rowcode.ColumnFunction+rowcode.Column(i)), kind(2+i), name)
	}
	for of, want := range map[rowcode.Column]kind{
		rowcode.ColumnFinish: 22, rowcode.ColumnErrorType: 23, rowcode.ColumnTools: 24, rowcode.ColumnTrace: 29,
	} {
		take(kindOf(of), want, "column")
	}
	for i, k := range []kind{
		metadataKeys, scoreCells, scoreValues, scoreAuthors, templateVersions, days, hiddenMetadata, hiddenKeys,
	} {
		take(k, kind(33+i), "a kind of several columns")
	}
	for c := rowcode.Column(metadataKeys); c < 64; c++ {
		take(kindOf(c), kind(c)+8, "a column of later")
	}
}

// A term of 0.1.0, as its fixture has it.
func TestATermIsWhatTheFirstReleaseWrote(t *testing.T) {
	const account = "0b8a3a3e-8b0f-4a7e-9c55-2f6f0a2f0c11"
	if got := term(account, templateVersions, "team/greet", "1"); got != 8894008528325684648 {
		t.Errorf("the term is %d", got)
	}
}
