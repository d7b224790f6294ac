package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"promptspool/api/wire"
)

func TestAWriteThatCannotBeHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := &batch{account: "bad"}
		entered, leave := make(chan struct{}, lanes), make(chan struct{})
		c := newCommitter(func(_ context.Context, _ int, group []*batch) error {
			if group[0].account == "first" {
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
				if err := c.do(context.Background(), b); (err == nil) != want {
					t.Errorf("%s: %v", b.account, err)
				}
			})
		}
		for range lanes {
			do(&batch{account: "first"}, true)
			<-entered
		}
		do(bad, false)
		for range 5 {
			do(&batch{account: "good"}, true)
		}
		synctest.Wait()
		close(leave)
		wg.Wait()
	})
}

func TestWhileTheDatabaseIsAwayNobodyIsTriedAlone(t *testing.T) {
	calls := 0
	c := newCommitter(func(context.Context, int, []*batch) error {
		calls++
		return wire.Unavailable(0, "It is away.")
	})
	c.queue = []*batch{{done: make(chan error, 1)}, {done: make(chan error, 1)}}
	if err := c.do(context.Background(), &batch{}); !wire.IsCode(err, wire.CodeUnavailable) || calls != 1 {
		t.Errorf("%d tries, %v", calls, err)
	}
}

func TestACallThatEndedIsNotCarriedOut(t *testing.T) {
	c := newCommitter(func(context.Context, int, []*batch) error { return errors.New("nobody should call this") })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.do(ctx, &batch{}); !wire.IsCode(err, wire.CodeUnavailable) {
		t.Error(err)
	}
}
