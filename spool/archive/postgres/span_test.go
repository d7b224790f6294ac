package postgres_test

import (
	"testing"
	"time"

	"promptspool/spool/archive/archivetest"
)

func TestSpansGoWithTheRetention(t *testing.T) {
	archivetest.RunSpanRetention(t, func(now time.Time) archivetest.Retainer { return at(t, empty(t), now) })
}
