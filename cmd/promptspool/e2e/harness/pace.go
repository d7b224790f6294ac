//go:build linux

package harness

import (
	"cmp"
	"iter"
	"os"
	"testing"
	"time"
)

// soakVariable makes the tests of the spool long: a time such as 10m, of which each scene
// takes its part. `make soak` sets it.
const soakVariable = "PROMPTSPOOL_SOAK"

// Soak returns how long a scene with this part of the soak may take, 0 when the tests are
// short.
func Soak(t *testing.T, part float64) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(os.Getenv(soakVariable), "0s"))
	if err != nil {
		t.Fatalf("%s is not a time such as 10m: %v", soakVariable, err)
	}
	return time.Duration(part * float64(d))
}

// Rounds counts short rounds, or as many as begin within this part of the soak.
func Rounds(t *testing.T, short int, part float64) iter.Seq[int] {
	t.Helper()
	long := Soak(t, part)
	begun := time.Now()
	return func(yield func(int) bool) {
		for i := 0; i < short || time.Since(begun) < long; i++ {
			if t.Failed() || !yield(i) {
				return
			}
		}
	}
}

// PauseFor lets time pass where something is measured.
func PauseFor(d time.Duration) { <-time.After(d) }

// Reached is Eventually for conditions that take long.
func Reached(t *testing.T, patience time.Duration, condition func() bool, message string) {
	t.Helper()
	if !holdsWithin(patience, condition) {
		t.Fatal(message)
	}
}

// holdsWithin waits for a condition, and reports whether it holds in time.
func holdsWithin(patience time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(patience); !condition(); PauseFor(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// Rounded returns a measured time as text, without more digits than it deserves.
func Rounded(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
