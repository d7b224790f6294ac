package auth

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// No letter of any script makes an email that of someone else.
func TestNoLetterIsTakenForAnotherInAnEmail(t *testing.T) {
	isASCII := func(r rune) bool { return r <= unicode.MaxASCII }
	accepted := 0
	for r := rune(unicode.MaxASCII + 1); r < 0xf0000; r++ {
		if r == 0x40000 {
			r = 0xe0000 // between them, and beyond, no character is assigned
		}
		email, faults := checkEmail("kate@" + string(r) + ".example")
		if faults != nil {
			continue
		}
		accepted++
		if strings.ContainsFunc(norm.NFKC.String(string(r)), isASCII) ||
			isASCII(unicode.SimpleFold(r)) || !strings.ContainsFunc(email, func(r rune) bool { return !isASCII(r) }) {
			t.Errorf("%U is accepted; the email is %q", r, email)
		}
		if again := written(email); again != email {
			t.Errorf("%q is compared as %q", email, again)
		}
	}
	if accepted < 100_000 {
		t.Errorf("only %d letters are accepted", accepted)
	}

	// The Kelvin sign, a long s, and a dotted and a dotless i.
	for _, letter := range []string{"\u212a", "\u017f", "\u0130", "\u0131"} {
		typed := letter + "ate@acme.example"
		if email, faults := checkEmail(typed); faults == nil {
			t.Errorf("%q is accepted as %q", typed, email)
		}
	}
	for typed, want := range map[string]string{
		" Ann@Example.com ":        "ann@example.com",
		"JOS\u00c9@EXAMPLE.com":    "jos\u00e9@example.com",
		"jose\u0301@example.com":   "jos\u00e9@example.com",
		"\u0391@example.com\u00a0": "\u03b1@example.com",
	} {
		if email, faults := checkEmail(typed); email != want || faults != nil {
			t.Errorf("%q is stored as %q, %v; want %q", typed, email, faults, want)
		}
	}
}
