package connection

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAStatementTimeoutIsReadAsTheDatabaseReadsIt(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s":   30 * time.Second,
		"500":   500 * time.Millisecond,
		"2min":  2 * time.Minute,
		"1 h":   time.Hour,
		"250ms": 250 * time.Millisecond,
		"0":     0,
		"":      0,
		"x":     0,
	} {
		b := newBound(text)
		if (b == nil) != (want == 0) || b != nil && b.most != want {
			t.Errorf("%q is %+v, want %v", text, b, want)
		}
	}
}

func TestAnImpatientStatementEndsEvenWithoutAStatementTimeout(t *testing.T) {
	none := &bound{}
	hurried := Impatiently(t.Context(), time.Minute)

	if end, ok := none.start(hurried, batchFactor).Deadline(); !ok || time.Until(end) > time.Minute {
		t.Errorf("it ends at %v, %v", end, ok)
	}
	if end, ok := none.start(t.Context(), 1).Deadline(); ok {
		t.Errorf("another statement ends at %v", end)
	}
	if end, _ := (&bound{most: time.Hour}).start(hurried, 1).Deadline(); time.Until(end) > time.Minute {
		t.Errorf("with a timeout of an hour it ends at %v", end)
	}
}

func TestAStatementIsWaitedForLongerThanItsTimeout(t *testing.T) {
	b := &bound{most: 30 * time.Second}
	for factor, want := range map[time.Duration]time.Duration{1: 35 * time.Second, batchFactor: 65 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx := b.start(t.Context(), factor)
			defer end(ctx)
			begun := time.Now()
			<-ctx.Done()
			if waited := time.Since(begun); waited != want {
				t.Errorf("with factor %d it is given up after %v, want %v", factor, waited, want)
			}
		})
	}

	patient := b.start(Patiently(t.Context()), 1)
	if deadline, ok := patient.Deadline(); ok {
		t.Errorf("a patient one ends at %v", deadline)
	}
}
