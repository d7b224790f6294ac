package archive

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"promptspool/api/wire"
)

func TestAPanicReleasesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type change = Waiting[func()]
		c := NewCommitter(1, 100, 10, func(_ context.Context, _ int, group []*change) {
			for _, w := range group {
				w.Change()
				w.Finish(nil)
			}
		})
		lane := <-c.lanes
		answer := make(chan error, 1)
		if err := c.enqueue(&change{Change: func() { panic("a change") }, done: make(chan error, 1)}); err != nil {
			t.Fatal(err)
		}

		go func() {
			answer <- c.Do(context.Background(), &change{Change: func() {
				t.Error("the other change of the " +
					"group was applied")
			}})
		}()
		synctest.Wait()

		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			c.commitGroup(context.Background(), lane)
		}()

		if err := <-answer; !wire.IsCode(err, wire.CodeInternal) {
			t.Errorf("the other change of the group: %v, want %s", err, wire.CodeInternal)
		}

		done := false
		if err := c.Do(context.Background(), &change{Change: func() { done = true }}); err != nil || !done {
			t.Errorf("the next change: applied %v, error %v", done, err)
		}
	})
}

// queued returns a committer in which changes of so many events and bytes wait.
func queued(t *testing.T, events ...int) *Committer[int] {
	t.Helper()
	c := NewCommitter(1, 1<<20, 1000, func(context.Context, int, []*Waiting[int]) {})
	for i, n := range events {
		if err := c.enqueue(&Waiting[int]{Change: i, Bytes: n, Events: n}); err != nil {
			t.Fatal(err)
		}
	}

	return c
}

func TestSmallChangesDoNotWaitBehindLargeOnes(t *testing.T) {
	c := queued(t, 900, 800, 1, 700, 2, 90)

	for _, want := range [][]int{
		{0, 2, 4, 5}, // the oldest, the small ones, and what still fits
		{1},
		{3},
		nil,
	} {
		var got []int
		for _, w := range c.take() {
			got = append(got, w.Change)
		}
		if !slices.Equal(got, want) {
			t.Errorf("a group of %v, want %v", got, want)
		}
	}
}

func TestAChangeBeyondAllBoundsIsAGroupOfItsOwn(t *testing.T) {
	c := queued(t, 5000, 1)

	if n := len(c.take()); n != 1 {
		t.Errorf("%d changes, want the large one alone", n)
	}
	if n := len(c.take()); n != 1 {
		t.Errorf("then %d changes, want the other", n)
	}
}
