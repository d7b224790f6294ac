package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

// awaitingGroup starts the leader's wait for other writers, in a spool whose last commit has
// just begun. Lately, the most writers to wait at the same time were `together`. The
// channel gets how long the leader waited.
func awaitingGroup(t *testing.T, together int) (s *Queue, done <-chan time.Duration) {
	t.Helper()
	s = &Queue{closed: make(chan struct{}), commitBegan: time.Now(), queue: []*write{{}}}
	s.crowd.note(together, time.Now())

	ended := make(chan time.Duration, 1)
	go func() {
		begun := time.Now()
		s.awaitGroup()
		ended <- time.Since(begun)
	}()
	synctest.Wait()

	return s, ended
}

// come queues one more writer.
func (q *Queue) come() {
	q.mu.Lock()
	q.queue = append(q.queue, &write{})
	q.noteArrivalLocked(time.Now())
	q.mu.Unlock()
	synctest.Wait()
}

func TestAWriterDoesNotWaitForOthers(t *testing.T) {
	for name, c := range map[string]struct {
		together, come int
		closes         bool
	}{
		"when it was alone of late":  {together: 1},
		"once eight are there":       {together: 100, come: groupMax - 1},
		"of a spool that is closing": {together: 100, closes: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, done := awaitingGroup(t, c.together)
			for range c.come {
				s.come()
			}
			if c.closes {
				close(s.closed)
			}
			if waited := <-done; waited != 0 {
				t.Errorf("%s it waited for %v", name, waited)
			}
		})
	}
}

func TestAWriterWaitsUntilAllCameWhoCameTogetherOfLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, done := awaitingGroup(t, 3)
		time.Sleep(time.Millisecond)
		s.come()
		select {
		case <-done:
			t.Fatal("two were enough")
		default:
		}

		time.Sleep(time.Millisecond)
		s.come()
		if waited := <-done; waited != 2*time.Millisecond {
			t.Errorf("it waited for %v", waited)
		}
	})
}

func TestAWriterWaitsNoLongerThanFiveMillisecondsAfterTheLastCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, done := awaitingGroup(t, 100)
		s.come()
		if waited := <-done; waited != groupWithin {
			t.Errorf("it waited for %v", waited)
		}
		begun := time.Now()
		s.awaitGroup()
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("long after the last commit it waited for %v", waited)
		}
	})
}

func TestACrowdIsForgottenAfterAWhile(t *testing.T) {
	var c crowd
	at := time.Unix(1000, 0)

	for _, step := range []struct {
		after   time.Duration
		writers int
		most    int
	}{
		{0, 5, 5},
		{crowdWindow / 2, 2, 5},
		{crowdWindow, 1, 5}, // in the next window
		{crowdWindow + time.Millisecond, 1, 1},
		{0, 3, 3},
		{time.Hour, 1, 1},
	} {
		at = at.Add(step.after)
		c.note(step.writers, at)
		if got := c.most(); got != step.most {
			t.Errorf("%v later, %d writers: the most lately is %d, want %d",
				step.after, step.writers, got, step.most)
		}
	}
}
