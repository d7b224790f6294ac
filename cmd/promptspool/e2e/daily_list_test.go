//go:build linux

package e2e

import (
	"fmt"
	"testing"

	"promptspool/cmd/promptspool/e2e/seed"
)

func TestYesterdaysFailuresOfAVersionAreOneLineAway(t *testing.T) {
	_, b := seeded(t)
	b.visit("/requests")
	b.shows("#count", "3\u202f000 requests")

	b.fill("#line", "status:error template:support/triage@3 time:yesterday")
	b.press(".filter .primary")
	b.shows("#count", fmt.Sprint(seed.YesterdayFailed, " requests"))
	b.shows("#list", "Request timed out after 30 s.")
}
