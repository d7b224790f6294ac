//go:build linux

package durability

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// Between the middle and the end nothing may grow by more than this, which is how much it
// varies from one moment to the next: the garbage collector's progress, idle connections,
// a generation more or less.
const (
	memoryVaries = 8 << 20
	filesVary    = 12
	diskVaries   = 20 << 20
)

// grown compares the end with the middle, each by the lowest of a third of the
// measurements, and returns what has grown; "" if nothing has.
func grown(seen []harness.Holding) string {
	third := len(seen) / 3
	middle, end := lowest(seen[third:2*third]), lowest(seen[2*third:])
	for _, m := range []struct {
		name                string
		middle, end, varies int64
	}{
		{"anonymous memory", middle.Memory, end.Memory, memoryVaries},
		{"open files", middle.Files, end.Files, filesVary},
		{"disk", middle.Disk, end.Disk, diskVaries},
	} {
		if m.end > m.middle+m.varies {
			return fmt.Sprintf("%s grew from %d to %d", m.name, m.middle, m.end)
		}
	}
	return ""
}

func lowest(seen []harness.Holding) harness.Holding {
	l := seen[0]
	for _, s := range seen {
		l.Memory, l.Files, l.Disk = min(l.Memory, s.Memory), min(l.Files, s.Files), min(l.Disk, s.Disk)
	}
	return l
}

func TestGrowthIsSeen(t *testing.T) {
	flat := slices.Repeat([]harness.Holding{
		{Memory: 30 << 20, Files: 40, Disk: 4 << 20}, {Memory: 36 << 20, Files: 45, Disk: 20 << 20},
	}, 6)
	if fault := grown(flat); fault != "" {
		t.Errorf("what only varies counts as growth: %s", fault)
	}
	for name, leak := range map[string]harness.Holding{
		"anonymous memory": {Memory: 3 << 20}, "open files": {Files: 4}, "disk": {Disk: 8 << 20},
	} {
		leaking := slices.Clone(flat)
		for i := range leaking {
			l, n := &leaking[i], int64(i)
			l.Memory += n * leak.Memory
			l.Files += n * leak.Files
			l.Disk += n * leak.Disk
		}
		if fault := grown(leaking); !strings.HasPrefix(fault, name) {
			t.Errorf("%s leaks, and grown returns %q", name, fault)
		}
	}
}
