package words_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"promptspool/api/words"
)

func TestAPhraseIsFoundAsPeopleReadIt(t *testing.T) {
	for _, c := range []struct {
		phrase, text, found string
	}{
		{"refund", "A Refund, please.", "Refund"},
		{"fund", "A Refund, please.", ""},
		{"fund*", "A Refund of funds.", "funds"},
		{"30 days", "within 30\n**days**.", "30\n**days"},
		{"30 days", "30 more days", ""},
		{"Zürich", "in ZURICH now", "ZURICH"},
		{"zurich", "in Zu\u0308rich now", "Zu\u0308rich"},
		{"straße", "STRASSE", "STRASSE"},
		{"strasse", "die STRAẞE.", "STRAẞE"},
		{"stras*", "die Straße.", "Straße"},
		{"kirmizi", "kırmızı KIRMIZI", "kırmızı"},
		{"user-42", "of user_42.", "user_42"},
		{"user-42", "of user 42.", ""},
		{"user 42", "of user-42.", "user-42"},
		{"42", "of user-42.", "42"},
		{"3.14", "pi is 3.14159", ""},
		{"3.14", "pi is 3.14!", "3.14"},
		{"7f2c1a", "id=7F2C1A", "7F2C1A"},
		{"東京", "私は東京都に住む", "東京"},
		{"京東", "私は東京都に住む", ""},
		{"京", "私は東京都に住む", "京"},
		{"東 京", "東京", "東京"},
		{"iPhone 手机", "新iphone手机", "iphone手机"},
		{"привет", "Привет, мир", "Привет"},
		{"नमस्ते", "कहो नमस्ते", "नमस्ते"},
		{"a b c", "a b a b c", "a b c"},
		{"οδός", "ΟΔΟΣ", "ΟΔΟΣ"},
		{"don't", "DON'T", "DON'T"},
		{"don't", "Don’t", "Don’t"},
		{"don’t", "don't", "don't"},
		{"don't", "don‘t", "don‘t"},
		{"don't", "donʼt", "donʼt"},
		{"don't", "don＇t", "don＇t"},
		{"don't", "don´t", "don´t"},
		{"don't", "don ’t", ""},
		{"don't", "don’’t", ""},
		{"don't", "don”t", ""},
		{"\u0301-a", "\u0301 a", ""},
		{"O'zbek", "Oʻzbek", "Oʻzbek"},
		{"gpt-4", "of gpt\u20114.", "gpt\u20114"},
		{"gpt\u20104", "of GPT-4.", "GPT-4"},
		{"2019-2020", "in 2019–2020", "2019–2020"},
		{"2019–2020", "in 2019-2020", "2019-2020"},
		{"2019-2020", "in 2019—2020", ""},
		{"3-2", "3−2", "3−2"},
		{"בית־ספר", "בית-ספר", "בית-ספר"},
		{"user_42", "ＵＳＥＲ＿４２", "ＵＳＥＲ＿４２"},
		{"cooperate", "to co\u00adoperate", "co\u00adoperate"},
		{"co\u00adoperate", "to cooperate", "cooperate"},
		{"operate", "to co\u00adoperate", ""},
		{"operat*", "to oper\u00adate", "oper\u00adate"},
		{"میخواهم", "می\u200cخواهم", "می\u200cخواهم"},
		{"می\u200cخواهم", "میخواهم", "میخواهم"},
		{"क्ष", "क्\u200dष", "क्\u200dष"},
		{"ភាសាខ្មែរ", "ភាសា\u200bខ្មែរ", "ភាសា\u200bខ្មែរ"},
		{"word", "a \ufeffw\u2060o\u200erd\u200b.", "w\u2060o\u200erd"},
		{"user-42", "user-\u200b42", "user-\u200b42"},
		{"user-42", "user\u200b-42", "user\u200b-42"},
		{"user-42", "user\u200b\u2011\u200b42", "user\u200b\u2011\u200b42"},
		{"user-42", "user-\u200b-42", ""},
		{"user-42", "user\u200b 42", ""},
		{"user 42", "user\u200b 42", "user\u200b 42"},
		{"disk full", "disk ⚠\ufe0f full", "disk ⚠\ufe0f full"},
		{"1", "1\ufe0f\u20e3 refund", "1\ufe0f\u20e3"},
	} {
		p, ok := words.ParsePhrase(c.phrase)
		if !ok {
			t.Fatalf("%q has no words", c.phrase)
		}
		got := ""
		for start, end := range p.All(c.text) {
			got = c.text[start:end]
			break
		}
		if got != c.found {
			t.Errorf("%q in %q: %q, want %q", c.phrase, c.text, got, c.found)
		}
	}
	if _, ok := words.ParsePhrase(" - !"); ok {
		t.Error("a phrase without words is one")
	}
}

// span is a word of a text as plain code finds it.
type span struct {
	start, end int
	folded     string
}

// isInvisible reports whether a character cannot be seen, and isLetter whether it is part of a word.
func isInvisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

func isLetter(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.M) && !isInvisible(r) && r != 'ʻ' && r != 'ʼ'
}

// without returns a text without some of its characters.
func without(text string, some func(r rune) bool) string {
	return strings.Map(func(r rune) rune {
		if some(r) {
			return -1
		}
		return r
	}, text)
}

// spansOf takes a text apart by the shortest code.
func spansOf(text string) (all []span) {
	isChar := func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Thai) }
	before := ' '
	for i, r := range text {
		last := len(all) - 1
		end := i + len(string(r))
		switch {
		case isInvisible(r):
			continue
		case !isLetter(r):
		case isChar(r) || isChar(before) || !isLetter(before):
			all = append(all, span{start: i, end: end})
		default:
			all[last].end = end
		}
		before = r
	}

	isAccent := func(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me) || isInvisible(r) }
	for i, s := range all {
		plain := without(norm.NFKD.String(text[s.start:s.end]), isAccent)
		all[i].folded = cases.Fold().String(strings.ToUpper(plain))
	}

	return all
}

// joined reports whether two words are joined in a text.
func joined(text string, a, b span) bool {
	between := without(text[a.end:b.start], isInvisible)
	return utf8.RuneCountInString(between) <= 1 && strings.Contains("_-./:@#'+’ʼ\u2011–＿", between)
}

// A phrase is exactly where plain code finds it.
func TestAPhraseIsWhereItsWordsAre(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string, most int) string {
			word := rapid.SampledFrom([]string{
				"a", "A", "refund", "Re\u0301fund", "İ", "i", "ﬁne", "fine", "42", "東", "京", "ก", "ß", "\u0301", "Ⱥ",
				"SS", "ẞ", "ı", "re\u00adfund", "4\ufe0f\u20e32",
			})
			gap := rapid.SampledFrom([]string{
				" ", "-", "_", "", "--", ". ", "\n", "’", "→", "ʼ", "\u2011", "–", "—", "＿", "\u200b", "-\u200d",
				"\u2060’\ufe0f", "-\u200b-", "\ufeff ",
			})
			text := ""
			for range rapid.IntRange(1, most).Draw(t, label) {
				text += word.Draw(t, label) + gap.Draw(t, label)
			}
			return text
		}
		text := draw("text", 12)
		phrase := strings.TrimRightFunc(draw("phrase", 2), func(r rune) bool { return !isLetter(r) })
		prefix := rapid.Bool().Draw(t, "prefix")

		var want [][2]int
		wanted, all := spansOf(phrase), spansOf(text)
		for i := 0; i+len(wanted) <= len(all); i++ {
			holds := true
			for j, w := range wanted {
				a := all[i+j]
				begins := prefix && j == len(wanted)-1 && strings.HasPrefix(a.folded, w.folded)
				mustJoin := j > 0 && joined(phrase, wanted[j-1], w) && !begins
				holds = holds && (begins || a.folded == w.folded) && (!mustJoin || joined(text, all[i+j-1], a))
			}
			if holds {
				want = append(want, [2]int{all[i].start, all[i+len(wanted)-1].end})
			}
		}

		if prefix {
			phrase += "*"
		}
		p, _ := words.ParsePhrase(phrase)
		var got [][2]int
		for start, end := range p.All(text) {
			got = append(got, [2]int{start, end})
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q is at %v of %q, want %v", phrase, got, text, want)
		}
		found += len(got)
	})
	if found == 0 {
		t.Error("nothing was found")
	}
}
