package words_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"promptspool/api/words"
)

// foldings has what each number of a folding makes of the texts below.
var foldings = map[int]string{
	1: "d6cd3588f6128d4d", // 0.1.0
	2: "158d628187247313",
	3: "158d628187247313", // of more texts of a call
}

// texts have what depends on more than one character.
var texts = []string{
	"Don't ask user-42 of a@b.example for 3.14, don’t -- and DON‘T: x__y +1 'q' a-'b",
	"gpt‑4 and gpt-4, 2019–2020 — 3−2, ＵＳＥＲ＿４２, donʼt, Hawaiʻi, 5′, ´a´",
	"co\u00adoperate user-\u200b42 user\u200b-42 a\u200b-\u200b-b \ufeffw\u2060o\u200erd\u200b. \u200b- x",
	"✔\ufe0f done 1\ufe0f\u20e3 👩\u200d💻 \u0301 \u0301-a\u0301 e\u0301e \u034f",
	"Straße STRASSE STRAẞE ΟΔΟΣ οδός ᾼδης İstanbul kırmızı ﬁne ŉ ǅ Ⅷ ½ x² Å K",
	"Привет, МИР ёлка Йод ᲀ ქართული ᲥᲐᲠᲗᲣᲚᲘ Հայերեն և Ꮳꮃꭹ 𐐀𐐨",
	"שָׁלוֹם בית־ספר צ׳ מַרْحَبًا می\u200cخواهم ١٢٣ ؀٤ ܫܠܡܐ",
	"नमस्ते क्\u200dष বাংলা தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල བོད་ཡིག አማርኛ",
	"私は東京都に住む。トウキョウ・ﾄｳｷｮｳ 新iphone手机：好 東\u200b京 東-京 a東b 𠀀𠀁",
	"ภาษาไทย ພາສາລາວ ភាសា\u200bខ្មែរ မြန်မာ 한국어 한국어 tiếng Việt",
	"broken \xff\xfeutf\xc3 a\xffb \xf0\x9f",
}

func TestAnotherFoldingHasAnotherNumber(t *testing.T) {
	var found []byte
	var w words.Scanner
	read := func(text string) {
		for w.Reset(text); w.Scan(); {
			found = binary.LittleEndian.AppendUint64(found, w.Hash)
			found = append(found, byte(w.Size))
			if w.Char {
				found = append(found, 'c')
			}
			if w.Joined {
				found = append(found, 'j')
			}
		}
		found = append(found, '\n')
	}
	for _, text := range texts {
		read(text)
	}
	for c := range unicode.MaxRune {
		read("x" + string(c) + "y" + " " + string(c))
	}

	if got := fmt.Sprintf("%x", sha256.Sum256(found))[:16]; got != foldings[words.Folding] {
		t.Errorf("texts have other words than those of folding %d: their digest is %q (Unicode %s). Databases have "+
			"indexes of the words of before: give words.Folding the next number, and write its digest beside it here",
			words.Folding, got, unicode.Version)
	}
}

// Unicode's full folding of case changes no word, but where it makes a letter of the iota below a Greek
// vowel, and two words of ŉ.
func TestCaseDoesNotCount(t *testing.T) {
	hasIota := func(text string) bool { return strings.ContainsRune(norm.NFD.String(text), '\u0345') }
	folder := cases.Fold()
	for c := range unicode.MaxRune {
		one := string(c)
		for _, other := range []string{strings.ToLower(one), strings.ToUpper(one), folder.String(one)} {
			if other == one || hasIota(one) || c == 'ŉ' {
				continue
			}
			if p, _ := words.ParsePhrase("x" + one + "y"); !p.In("x" + other + "y") {
				t.Errorf("%U: %s is another word than %s", c, one, other)
			}
		}
	}
}
