package proxy

import "testing"

func TestAFewBadEventsAreBelievedAndManyAreNot(t *testing.T) {
	seq := uint64(0)
	refuse := func(s *rejectionGuard, key uint32, times int) (believed int) {
		for range times {
			seq++
			if s.refused(key, seq) {
				believed++
			}
		}
		return believed
	}

	t.Run("in a row", func(t *testing.T) {
		s := newRejectionGuard()
		if n := refuse(s, 1, 100); n != rowMax {
			t.Errorf("%d in a row are believed; want %d", n, rowMax)
		}
		s.taken(1, 1, seq)
		if n := refuse(s, 1, 1); n != 1 {
			t.Error("after one that was taken, none is believed")
		}
	})

	t.Run("in a row over all keys", func(t *testing.T) {
		s, believed := newRejectionGuard(), 0
		for key := range uint32(100) {
			believed += refuse(s, key, 1)
		}
		if believed != rowMax {
			t.Errorf("%d in a row of different keys are believed; want %d", believed, rowMax)
		}
	})

	t.Run("one key's in a row, beside others that are taken", func(t *testing.T) {
		s, believed := newRejectionGuard(), 0
		for range 100 {
			believed += refuse(s, 1, 1)
			s.taken(2, 1000, seq)
		}
		if believed != rowMax {
			t.Errorf("%d in a row are believed; want %d", believed, rowMax)
		}
		if refuse(s, 2, 1) != 1 {
			t.Error("another key is suspected as well")
		}
	})

	t.Run("one in a hundred of the last ten thousand", func(t *testing.T) {
		s, believed := newRejectionGuard(), 0
		for range 300 { // one in 21 is bad
			believed += refuse(s, 1, 1)
			s.taken(1, 20, seq)
		}
		if believed != refusedRecent {
			t.Errorf("%d are believed; want %d", believed, refusedRecent)
		}

		for range judgedRecent / 20 {
			s.taken(1, 20, seq)
		}
		if refuse(s, 1, 1) != 1 {
			t.Error("ten thousand good ones later it is still suspected")
		}
	})

	t.Run("doubted, and again after the server has taken a later one", func(t *testing.T) {
		s := newRejectionGuard()
		through := func(first, last uint64) (believed int) {
			for seq := first; seq <= last; seq++ {
				if s.refused(1, seq) {
					believed++
				}
			}
			return believed
		}

		s.taken(1, 1, 1000) // before: that is no sign of how the server is now
		if n := through(1, 100) + through(6, 100); n != rowMax {
			t.Errorf("of a server that takes nothing %d are believed; want %d", n, rowMax)
		}
		s.taken(1, 1, 50)
		if n := through(6, 49); n != 44 {
			t.Errorf("of 44 before the event that was taken, %d are believed", n)
		}
		if n := through(51, 100); n != rowMax {
			t.Errorf("of 50 after it, %d are believed; want %d", n, rowMax)
		}
	})

	t.Run("less than one in a hundred, for ever", func(t *testing.T) {
		s, believed := newRejectionGuard(), 0
		for range 1000 {
			believed += refuse(s, 1, 1)
			s.taken(1, 150, seq)
		}
		if believed != 1000 {
			t.Errorf("%d of 1000 are believed", believed)
		}
	})
}

func TestTheBoundFollowsWhatPassesBetween(t *testing.T) {
	b, limit := newBound(), 10_000
	refusals := 0
	send := func() {
		size := b.get() // batches as full as may be
		if size > limit {
			refusals++
			b.refused(size)
			return
		}
		b.passed(size)
	}

	for range 1000 {
		send()
	}
	if refusals > 7+1000/40 {
		t.Errorf("of 1000 batches %d were refused; want some to find the limit, and one in about forty after that",
			refusals)
	}
	if n := b.get(); n < limit/3 {
		t.Errorf("the bound is %d; the limit is %d", n, limit)
	}

	limit = 1 << 30
	for range 1000 {
		send()
	}
	if n := b.get(); n != batchBytesMax {
		t.Errorf("the limit was lifted, and the bound is %d; want %d", n, batchBytesMax)
	}

	for range 100 {
		b.refused(1)
	}
	if b.get() < 1 || !b.fits(0, 0, 5000) || b.fits(1, 1, 1) {
		t.Error("one event must fit however small the bound is, and a second must not")
	}
}
