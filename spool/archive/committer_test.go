package archive

import (
	"context"
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
			answer <- c.Do(context.Background(), &change{Change: func() { t.Error("a neighbour was carried out") }})
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
			t.Errorf("the neighbour: %v", err)
		}

		done := false
		if err := c.Do(context.Background(), &change{Change: func() { done = true }}); err != nil || !done {
			t.Errorf("the next change: %v", err)
		}
	})
}
