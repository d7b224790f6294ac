package admission

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestAPoolGetsBackWhatItGave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const small = 64
		const whole = 10 * small
		watched := int64(0)
		p := NewPool(Rules{
			Size: whole, Share: Fixed(6 * small), SmallMax: small, SmallSize: small,
			Watch: func(more int64) { watched += more },
		})
		var all []*Claim

		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			owner := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "owner")
			switch at := rapid.IntRange(0, len(all)).Draw(t, "claim"); {
			case at == len(all):
				c := p.Claim(owner)
				if size := rapid.Int64Range(1, whole).Draw(t, "size"); c.Resize(size) == nil {
					all = append(all, &c)
				}
			case rapid.Bool().Draw(t, "resizes"):
				size, before := rapid.Int64Range(0, whole).Draw(t, "to"), all[at].Held()
				if err := all[at].Resize(size); err != nil && (size <= before || all[at].Held() != before) {
					t.Fatalf("from %d to %d: %v, and it holds %d", before, size, err, all[at].Held())
				}
			case all[at].Owner() == "":
				all[at].Pass(owner)
			default:
				all[at].Release()
				all = append(all[:at], all[at+1:]...)
			}

			sum := int64(0)
			for _, c := range all {
				sum += c.Held()
			}
			if p.free != whole-sum || p.free < 0 || watched != sum {
				t.Fatalf("%d are free of %d, %d are held, %d as it is watched", p.free, whole, sum, watched)
			}
		}

		for _, c := range all {
			c.Release()
			c.Release()
		}
		if p.free != whole || len(p.held) != 0 {
			t.Fatalf("%d of %d came back; %v", p.free, whole, p.held)
		}
	})
}

func TestAPoolHasASizeAndAShareForEachOwner(t *testing.T) {
	p := NewPool(Rules{Size: 3, Share: Fixed(2)})
	want := func(owner string, want error) (release func()) {
		t.Helper()
		c := p.Claim(owner)
		if err := c.Resize(1); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", owner, err, want)
		}
		return c.Release
	}

	ann := want("ann", nil)
	want("ann", nil)
	want("ann", ErrShare)
	want("bob", nil)
	want("bob", ErrFull)
	want("ann", ErrShare) // though nothing is left either
	ann()
	want("bob", nil)
	want("bob", ErrShare)
}

func TestAKeyMayHoldBesideItsFirstBatchWhatIsLeftOver(t *testing.T) {
	p := NewPool(Rules{Size: 100, Share: LeftOver})
	take := func(key string, n int64) (*Claim, error) {
		c := p.Claim(key)
		return &c, c.Resize(n)
	}
	first, err := take("a", 90)
	if err != nil {
		t.Fatalf("a key's first batch, however large: %v", err)
	}
	if _, err := take("a", 6); !errors.Is(err, ErrShare) {
		t.Errorf("its second, beside so large a first: %v", err)
	}
	if _, err := take("a", 11); !errors.Is(err, ErrFull) {
		t.Errorf("its second, larger than what is left: %v", err)
	}
	if _, err := take("b", 11); !errors.Is(err, ErrFull) {
		t.Errorf("more than there is: %v", err)
	}

	first.Release()
	held := int64(0)
	for {
		c, err := take("greedy", 1)
		if err != nil {
			break
		}
		held += c.Held()
	}
	if held != 50 {
		t.Errorf("a greedy key alone holds %d of 100, want a half", held)
	}
	if _, err := take("another", 25); err != nil {
		t.Errorf("another key finds no room: %v", err)
	}
}
