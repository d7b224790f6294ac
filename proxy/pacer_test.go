package proxy

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWorkRestsAsLongAsItTookWhileTheAppWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := uint64(8)
		m := newPacer(func() uint64 { return next })
		pass := func(d time.Duration) { <-time.After(d) }

		restAfter := func(work time.Duration) time.Duration {
			begun := time.Now()
			pass(work)
			ended := time.Now()
			if at := m.rest(begun); work >= pieceTime && !at.Equal(time.Now()) || work < pieceTime && !at.Equal(begun) {
				t.Errorf("after work of %v the next piece begins at %v, it is %v", work, at, time.Now())
			}
			return time.Since(ended)
		}

		for _, c := range []struct {
			scene          string
			writes         uint64
			later          time.Duration
			work, restWant time.Duration
		}{
			{"what was there before it started is not the app's writing", 0, 0, time.Millisecond, 0},
			{"the app wrote", 1, 0, time.Millisecond, time.Millisecond},
			{"and the piece was too short", 1, 0, pieceTime - 1, 0},
			{"and the piece was kept waiting itself", 1, 0, time.Second / 2, restMax},
			{"it wrote less than a second ago", 0, 0, pieceTime, pieceTime},
			{"it wrote a second ago", 0, writingFor, time.Millisecond, 0},
			{"it writes again", 3, time.Hour, time.Millisecond, time.Millisecond},
		} {
			next += c.writes
			pass(c.later)
			if rested := restAfter(c.work); rested != c.restWant {
				t.Errorf("%s: after work of %v it rested %v, want %v", c.scene, c.work, rested, c.restWant)
			}
		}
	})
}
