package jsonscan

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// Strings of many lengths, with a byte that ends their plain text at any place.
func TestPlainTextIsSkippedUpToItsFirstStop(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := make([]byte, random.IntN(600))
		for i := range text {
			text[i] = " !#[]~a\x7f\x80\xff"[random.IntN(10)]
		}
		for range random.IntN(3) {
			if len(text) > 0 {
				text[random.IntN(len(text))] = "\"\\\x00\x1f\n"[random.IntN(5)]
			}
		}

		begin := random.IntN(len(text) + 1)
		want := begin
		for want < len(text) && text[want] >= ' ' && text[want] != '"' && text[want] != '\\' {
			want++
		}

		// It may leave the last few bytes to its caller, but not a stop behind it.
		got := skipPlain(text, begin)
		if got != want && (got > want || len(text)-got >= 8) {
			t.Fatalf("%q from %d: skipped to %d, want %d", text, begin, got, want)
		}
	}
}

func FuzzValid(f *testing.F) {
	long := bytes.Repeat([]byte("All happy families. "), 20)
	for _, seed := range []string{`{"a":[1,-2.5e+3,true,null,"\u00e9\n"]}`, `"` + string(long) + `\n"`,
		`["` + string(long) + "\x1f\"]", `"` + string(long) + `\x"`, ` 01`, `[1,]`, `{"a"}`} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := Valid(b), json.Valid(b); got != want {
			t.Errorf("%q is valid: %v, want %v", b, got, want)
		}
	})
}
