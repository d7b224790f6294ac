package number

import "testing"

func TestATimeIsPrintedInItsUnit(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0 ms", 0.0004: "0.4 ms", 0.00123: "1.2 ms", 0.00996: "10 ms", 0.25: "250 ms", 0.9994: "999 ms",
		0.9996: "1.00 s", 9.99: "9.99 s", 9.996: "10.0 s", 30: "30.0 s", 59.94: "59.9 s",
		59.99: "1 min 00 s", 60.4: "1 min 00 s", 125: "2 min 05 s", 3599.4: "59 min 59 s",
		3599.6: "1 h 00 min", 5400: "1 h 30 min", 360_000: "100 h 00 min",
	} {
		if got := Latency(&v); got != want {
			t.Errorf("%v is printed as %q, want %q", v, got, want)
		}
	}
}
