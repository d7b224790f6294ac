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

func TestNumbersBesideEachOtherArePrintedAlike(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.125: "0.125", 68.625: "68.62", 999.96: "1,000", 3855: "3,855", 9999: "9,999",
		10_000: "10 k", 50_000: "50 k", 65_432: "65.4 k",
	} {
		if got := Count(v); got != want {
			t.Errorf("%v is %q as a count, want %q", v, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0", 999: "999", 3140: "3,140", 9999: "9,999", 12_700: "12.7 k", 14_000: "14.0 k",
		99_960: "100 k", 610_400: "610 k", 999_600: "1.00 M", 1_016_852: "1.02 M", 23_000_000: "23.0 M",
	} {
		if got := Brief(n); got != want {
			t.Errorf("%v is %q in a column, want %q", n, got, want)
		}
	}
}
