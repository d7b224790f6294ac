package connection

import (
	"testing"
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
