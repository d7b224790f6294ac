package main

import (
	"cmp"
	"iter"
	"os"
	"testing"
	"time"
)

// helperVariable makes this test binary another process of the harness instead of running tests.
const helperVariable = "PROMPTSPOOL_TEST_HELPER"

// runHelper runs what helperVariable names to its end; it says false if this is the process that runs the tests.
func runHelper() bool {
	switch os.Getenv(helperVariable) {
	case "":
		return false
	case "oracle":
		runOracle()
	}
	return true
}

// soakVariable makes the tests of the spool long: a time such as 10m, of which each scene takes its part. `make soak` sets it.
const soakVariable = "PROMPTSPOOL_SOAK"

// soak is how long a scene with this part of the soak may take, 0 when the tests are to be short.
func soak(t *testing.T, part float64) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(os.Getenv(soakVariable), "0s"))
	if err != nil {
		t.Fatalf("%s is not a time such as 10m: %v", soakVariable, err)
	}
	return time.Duration(part * float64(d))
}

// rounds counts short rounds, or as many as begin within this part of the soak.
func rounds(t *testing.T, short int, part float64) iter.Seq[int] {
	t.Helper()
	long := soak(t, part)
	begun := time.Now()
	return func(yield func(int) bool) {
		for i := 0; i < short || time.Since(begun) < long; i++ {
			if t.Failed() || !yield(i) {
				return
			}
		}
	}
}
