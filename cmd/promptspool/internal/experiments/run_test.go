package experiments

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
)

func TestARunWaitsHalfAMinuteForItsServer(t *testing.T) {
	away, invalid := wire.Unavailable(0, "The server is away."), wire.Errorf(wire.CodeInvalid, "No.")
	for name, c := range map[string]struct {
		answers []error // the last one again and again
		want    error
		took    time.Duration
		stopped time.Duration // when the command is
	}{
		"there":          {[]error{nil}, nil, 0, time.Hour},
		"back":           {[]error{away, away, nil}, nil, 2 * time.Second, time.Hour},
		"away for good":  {[]error{away}, away, 31 * time.Second, time.Hour},
		"refuses":        {[]error{away, invalid}, invalid, time.Second, time.Hour},
		"says when":      {[]error{wire.Unavailable(7*time.Second, "Later."), nil}, nil, 7 * time.Second, time.Hour},
		"is not awaited": {[]error{away}, away, 1500 * time.Millisecond, 1500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.stopped)
			defer cancel()
			begun := time.Now()
			err := again(ctx, func() error {
				answer := c.answers[0]
				c.answers = c.answers[min(1, len(c.answers)-1):]
				return answer
			})
			if took := time.Since(begun); err != c.want || took != c.took {
				t.Errorf("%s: %v after %v, want %v after %v", name, err, took, c.want, c.took)
			}
		})
	}
}
