package postgres

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"promptspool/api/wire"
)

func TestAWriteThatCannotBeHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named := func(account string) *batch { return &batch{Change: application{account: account}} }
		bad := named("bad")
		entered, leave := make(chan struct{}, lanes), make(chan struct{})
		c := newCommitter(0, func(_ context.Context, _ int, group []*batch) error {
			if group[0].Change.account == "first" {
				entered <- struct{}{}
				<-leave // the others gather meanwhile
			}
			for _, b := range group {
				if b == bad {
					return wire.Errorf(wire.CodeInternal, "it can never be written")
				}
			}
			return nil
		})

		var wg sync.WaitGroup
		do := func(b *batch, want bool) {
			wg.Go(func() {
				if err := c.Do(context.Background(), b); (err == nil) != want {
					t.Errorf("the write of %s: %v", b.Change.account, err)
				}
			})
		}

		for range lanes {
			do(named("first"), true)
			<-entered
		}
		do(bad, false)
		for range 5 {
			do(named("good"), true)
		}
		synctest.Wait()
		close(leave)
		wg.Wait()
	})
}

func TestWhileTheDatabaseIsAwayNobodyIsTriedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := newCommitter(0, func(context.Context, int, []*batch) error {
			calls++
			return wire.Unavailable(0, "It is away.")
		})
		var holds []func()
		for range lanes {
			release, _ := c.Hold(nil)
			holds = append(holds, release)
		}

		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := c.Do(context.Background(), &batch{}); !wire.IsCode(err, wire.CodeUnavailable) {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // they are one group
		for _, release := range holds {
			release()
		}
		wg.Wait()

		if calls != 1 {
			t.Errorf("%d tries, want 1", calls)
		}
	})
}
