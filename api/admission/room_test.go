package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
)

const mib = 1 << 20

// largeRequest returns the claim of a call that has taken some room, if there was any.
func largeRequest(t *testing.T, r *Room, local bool, bytes int) *RoomClaim {
	t.Helper()
	c := r.Claim(local)
	if err := TakeRoom(WithRoom(t.Context(), &c), bytes); err != nil {
		t.Fatal(err)
	}

	return &c
}

func TestLargeCallsWaitAndSmallOnesDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(16*mib, 100*mib)
		first := largeRequest(t, r, false, 8*mib)
		began := time.Now()
		largeRequest(t, r, false, SmallBytes)
		time.AfterFunc(time.Second, first.Release)

		alone := largeRequest(t, r, false, 100*mib) // more than there is: it has all of it
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("the second call waited %v, want 1 s", waited)
		}

		alone.Release()
		alone.Release()
		if largeRequest(t, r, false, 12*mib).held != 12*mib {
			t.Error("not all of the room came back")
		}
	})
}

func TestCallsThatWaitForAServerLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(16*mib, 100*mib)
		passed := largeRequest(t, r, false, 100*mib)
		began := time.Now()
		largeRequest(t, r, true, 4*mib)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a call that is answered here waited %v", waited)
		}

		time.AfterFunc(time.Second, passed.Release)
		largeRequest(t, r, true, 5*mib) // more than is kept for its like
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("a larger one waited %v, want 1 s", waited)
		}
	})
}

func TestACallThatNeedsTooMuchIsNotAdmitted(t *testing.T) {
	c := NewRoom(16*mib, 100*mib).Claim(false)
	ctx := WithRoom(t.Context(), &c)
	if err := AdmitRoom(ctx, 100*mib+1); !wire.IsCode(err, wire.CodeTooLarge) || c.Holds() {
		t.Errorf("it is answered with %v", err)
	}
	if err := AdmitRoom(ctx, 100*mib); err != nil || !c.Holds() {
		t.Errorf("one that may is answered with %v", err)
	}
}

func TestNobodyWaitsForRoomForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(16*mib, 100*mib)
		largeRequest(t, r, false, 10*mib)

		began := time.Now()
		c := r.Claim(false)
		err := TakeRoom(WithRoom(t.Context(), &c), 4*mib)
		if !wire.IsCode(err, wire.CodeUnavailable) || time.Since(began) != roomPatience || c.Holds() {
			t.Errorf("after %v: %v", time.Since(began), err)
		}

		gone, leave := context.WithCancel(t.Context())
		leave()
		err = TakeRoom(WithRoom(gone, &c), 4*mib)
		if !errors.Is(err, context.Canceled) || !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("a caller who left gets %v", err)
		}
	})
}

// Two calls that each hold some and want more must not wait for each other.
func TestACallThatHoldsRoomDoesNotWaitForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(16*mib, 100*mib)
		claims := []*RoomClaim{largeRequest(t, r, false, 5*mib), largeRequest(t, r, false, 5*mib)}
		began := time.Now()
		for _, c := range claims {
			if err := TakeRoom(WithRoom(t.Context(), c), 7*mib); err != nil {
				t.Error(err)
			}
			if err := TakeRoom(WithRoom(t.Context(), c), mib); err != nil {
				t.Error(err)
			}
		}
		if time.Since(began) != 0 || claims[0].held != 7*mib || claims[1].held != 5*mib {
			t.Errorf("they waited %v and hold %d and %d", time.Since(began), claims[0].held, claims[1].held)
		}
	})
}

func TestACallGivesBackWhatItNeedsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(16*mib, 100*mib)
		c := largeRequest(t, r, false, 12*mib)
		c.Keep(2 * mib)
		c.Keep(3 * mib) // which it does not have any more
		began := time.Now()
		largeRequest(t, r, false, 10*mib)
		if c.held != 2*mib || time.Since(began) != 0 {
			t.Errorf("it holds %d bytes, and another call waited %v for the rest", c.held, time.Since(began))
		}
	})
}

func TestWithoutARoomNothingIsBounded(t *testing.T) {
	var none *Room
	if c := largeRequest(t, none, false, 100*mib); c.Holds() {
		t.Error("something is held of no room")
	}
	if err := AdmitRoom(t.Context(), 100*mib); err != nil {
		t.Error(err)
	}
}
