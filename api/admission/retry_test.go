package admission

import (
	"testing"
	"time"
)

func TestManyAreToldDifferentMoments(t *testing.T) {
	var r RetryAfter
	few, many := map[int]int{}, map[int]int{}
	for range 10 {
		few[int(r.Next()/time.Second)]++
	}
	for range 5000 {
		many[int(r.Next()/time.Second)]++
	}

	for s := range few {
		if s > 3 {
			t.Errorf("one of few is told to wait %d s", s)
		}
	}

	crowd := 0
	for _, n := range many {
		crowd = max(crowd, n)
	}
	if len(many) < 15 || crowd > 1500 {
		t.Errorf("of 5,000 that are refused within a moment, %d come back in the same second, over %d seconds: %v",
			crowd, len(many), many)
	}
}
