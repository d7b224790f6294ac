package textindex_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"promptspool/api/words"
	"promptspool/spool/archive/textindex"
)

// english makes texts with words by Zipf's law, code and ids.
type english struct {
	rnd   *rand.Rand
	zipf  *rand.Zipf
	words []string
}

func newEnglish() *english {
	e := &english{rnd: rand.New(rand.NewPCG(1, 2))}
	e.zipf = rand.NewZipf(e.rnd, 1.07, 2, 200_000)
	for i := range 200_001 {
		word := ""
		for range 2 + e.rnd.IntN(4) + i/50_000 {
			word += string("bcdfghklmnprst"[e.rnd.IntN(14)]) + string("aeiou"[e.rnd.IntN(5)])
		}
		e.words = append(e.words, word)
	}

	return e
}

func (e *english) word() string { return e.words[e.zipf.Uint64()] }

func (e *english) text(bytes int) string {
	var b strings.Builder
	for b.Len() < bytes {
		switch e.rnd.IntN(200) {
		case 0:
			fmt.Fprintf(&b, "%08x-%04x-4%03x-8%03x-%012x ", e.rnd.Uint32(), e.rnd.IntN(1<<16), e.rnd.IntN(1<<12),
				e.rnd.IntN(1<<12), e.rnd.Uint64()>>16)
		case 1:
			fmt.Fprintf(&b, "order-%d ", e.rnd.IntN(100_000))
		case 2:
			fmt.Fprintf(&b, "func %s_%s(x int) { return %d.5 }\n", e.word(), e.word(), e.rnd.IntN(1000))
		default:
			b.WriteString(e.word() + " ")
		}
	}

	return b.String()
}

func BenchmarkBuild(b *testing.B) {
	var texts []string
	size := 0
	for e := newEnglish(); len(texts) < 4096; {
		texts = append(texts, e.text(4096))
		size += len(texts[len(texts)-1])
	}

	var builder textindex.Builder
	for b.Loop() {
		for i, text := range texts {
			builder.Add(i, textindex.Terms(text))
		}
		pages := 0
		for i := range textindex.Pages {
			pages += len(builder.Encode(i))
		}
		b.ReportMetric(float64(pages)/float64(size)*100, "%size")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/4096/float64(b.N), "µs/text")
}

func BenchmarkFind(b *testing.B) {
	text := newEnglish().text(4096)
	p, _ := words.ParsePhrase("nowhere at all")
	for b.Loop() {
		if p.In(text) {
			b.Fatal("found")
		}
	}
}
