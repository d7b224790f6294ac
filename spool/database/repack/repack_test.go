package repack_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"promptspool/spool/archive"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/repack"
)

// shelf is a store of bodies, as small as can be.
type shelf struct {
	t      rapid.TB
	codec  *compress.Codec
	bodies []repack.Body
	sent   [][]byte
}

func newShelf(t rapid.TB) *shelf {
	codec, err := compress.New(1)
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{t: t, codec: codec}
}

// put stores a body as it came.
func (s *shelf) put(body string) {
	n := byte(len(s.bodies) + 1)
	s.bodies = append(s.bodies, repack.Body{
		Request: archive.UUID{15: n}, Event: archive.UUID{0: n}, Value: s.codec.Body([]byte(body)),
	})
	s.sent = append(s.sent, []byte(body))
}

func (s *shelf) at(request archive.UUID) *repack.Body { return &s.bodies[request[15]-1] }

// pack packs what there is, and checks that all of it is still what was sent.
func (s *shelf) pack(rule repack.Rule) {
	changed, _, err := rule.Pack(s.codec, s.bodies)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range changed {
		b := s.at(c.Request)
		if c.Value != nil {
			b.Value = c.Value
		}
		if c.Dependants != nil {
			b.Dependants = c.Dependants
		}
	}
	s.check()
}

func (s *shelf) check() {
	// Another codec, which remembers no base.
	codec, err := compress.New(1)
	if err != nil {
		s.t.Fatal(err)
	}
	for i, b := range s.bodies {
		if b.Value == nil {
			continue
		}
		base, dependent := compress.BaseOf(b.Value)
		if dependent && !s.at(base.Request).Dependants.Has(b.Request, b.Event) {
			s.t.Fatalf("body %d is not in the list of what it is packed against", i)
		}
		if dependent && len(b.Dependants) > 0 {
			s.t.Fatalf("body %d is packed against another, and others against it", i)
		}
		plain, err := codec.UnpackBody(b.Value, nil, func(b compress.Base) ([]byte, error) {
			return s.at(b.Request).Value, nil
		})
		if err != nil || !bytes.Equal(plain, s.sent[i]) {
			s.t.Fatalf("body %d is %.80q (%v), and was %.80q", i, plain, err, s.sent[i])
		}
	}
}

// share returns how much of what was sent the bodies take.
func (s *shelf) share() float64 {
	stored, sent := 0, 0
	for i, b := range s.bodies {
		stored += len(b.Value) + len(b.Dependants)
		sent += len(s.sent[i])
	}
	return float64(stored) / float64(sent)
}

// dependants returns how many bodies are packed against each.
func (s *shelf) dependants() (n []int) {
	for _, b := range s.bodies {
		n = append(n, len(b.Dependants)/32)
	}
	return n
}

// talk returns the bodies of a session: each has all that was said before.
func talk(turns int, seed uint64) (bodies []string) {
	random := rand.New(rand.NewPCG(seed, 5))
	said := ""
	for range turns {
		for range 100 {
			said += fmt.Sprintf("%x ", random.Uint64())
		}
		bodies = append(bodies, said)
	}
	return bodies
}

func TestASessionIsPackedAgainstItsLongestBody(t *testing.T) {
	s := newShelf(t)
	for _, body := range talk(20, 1) {
		s.put(body)
	}
	alone := s.share()
	s.pack(repack.DefaultRule)

	if got := s.dependants(); got[19] != 19 {
		t.Errorf("the bodies have %v dependants, and the last should have all others", got)
	}
	if now := s.share(); now > alone/8 {
		t.Errorf("the session takes %.3f of what was sent; alone its bodies took %.3f", now, alone)
	}
}

func TestLateBodiesTakeTheBaseUntilTheyAreBetterOnes(t *testing.T) {
	s := newShelf(t)
	bodies := talk(40, 1)
	for _, body := range bodies[:20] {
		s.put(body)
	}
	s.pack(repack.DefaultRule)
	for _, body := range bodies[20:] {
		s.put(body)
		s.pack(repack.DefaultRule)
	}

	got := s.dependants()
	bases := 0
	for _, n := range got {
		bases += min(n, 1)
	}
	if got[19] < 20 || bases < 2 || bases > 4 {
		t.Errorf("the bodies have %v dependants: the 20th takes some more, and then longer ones do", got)
	}
}

// A list that named a body twice would have it freed twice, which PostgreSQL takes for another server's change.
func TestABodyThatIsReplacedIsListedOnce(t *testing.T) {
	s := newShelf(t)
	for _, body := range talk(5, 1) {
		s.put(body)
	}
	s.pack(repack.DefaultRule)
	s.bodies[0].Value = s.codec.Body(s.sent[0])
	s.pack(repack.DefaultRule)

	_, dependent := compress.BaseOf(s.bodies[0].Value)
	if got := s.dependants(); !dependent || got[4] != 4 {
		t.Errorf("the bodies have %v dependants, and the last should have four", got)
	}
}

func TestEachAgentOfASessionHasItsBase(t *testing.T) {
	s := newShelf(t)
	planner, coder := talk(10, 1), talk(10, 2)
	for i := range planner {
		s.put(planner[i])
		s.put(coder[i])
	}
	s.pack(repack.DefaultRule)

	if got := s.dependants(); got[18] != 9 || got[19] != 9 {
		t.Errorf("the bodies have %v dependants, and the last two should have nine each", got)
	}
}

func TestABaseHasABoundedNumberOfDependants(t *testing.T) {
	s := newShelf(t)
	for _, body := range talk(100, 1) {
		s.put(body)
	}
	s.pack(repack.DefaultRule)

	for i, n := range s.dependants() {
		if n > 64 {
			t.Errorf("body %d has %d dependants", i, n)
		}
	}
}

func TestWhatSharesNothingStaysAlone(t *testing.T) {
	s := newShelf(t)
	for seed := range uint64(20) {
		s.put(talk(1, seed)[0])
	}
	before := s.share()
	s.pack(repack.DefaultRule)

	if after := s.share(); after != before {
		t.Errorf("bodies that have nothing in common take %.3f instead of %.3f", after, before)
	}
}

// Any bodies are what they were, in whatever order they come, are packed, and bases go or change.
func TestBodiesStayWhatTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShelf(t)
		rule := repack.Rule{
			Least:   rapid.IntRange(0, 100).Draw(t, "least"),
			Largest: 1000,
			Most:    rapid.SampledFrom([]float64{0.75, 1e9}).Draw(t, "most"),
		}
		parts := rapid.SliceOfN(rapid.StringN(0, 60, 200), 1, 8).Draw(t, "parts")
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"put", "put", "put", "pack", "change"}).Draw(t, "step") {
			case "put":
				s.put(strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 20).Draw(t, "body"), ""))
			case "pack":
				s.pack(rule)
			case "change":
				s.change(rapid.IntRange(0, 29).Draw(t, "which"), rapid.SampledFrom(parts).Draw(t, "new"))
			}
		}
	})
}

// change replaces a body, as an edit does.
func (s *shelf) change(i int, body string) {
	if i >= len(s.bodies) {
		return
	}
	b := &s.bodies[i]
	err := repack.Free(s.codec, *b, func(request, _ archive.UUID) ([]byte, error) {
		return s.at(request).Value, nil
	}, func(freed repack.Body) { s.at(freed.Request).Value = freed.Value })
	if err != nil {
		s.t.Fatal(err)
	}

	b.Value, b.Dependants, s.sent[i] = s.codec.Body([]byte(body)), nil, []byte(body)
	s.check()
}
