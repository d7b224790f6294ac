//go:build linux

package cost

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"promptspool/cmd/promptspool/e2e/harness"
)

// meter reads what a process uses.
type meter struct {
	t   testing.TB
	pid int
}

// in returns the meter for a subtest.
func (m meter) in(t testing.TB) meter { return meter{t, m.pid} }

// processor returns the time that all threads of the process have taken. It reads a clock
// of nanoseconds; the one in /proc/PID/stat ticks each 10 ms.
func (m meter) processor() time.Duration {
	const sched = 2 // CPUCLOCK_SCHED, in the clock's lowest bits; see clock_getcpuclockid(3)
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^m.pid<<3|sched), &spent); err != nil {
		m.t.Fatalf("the processor time of %d: %v", m.pid, err)
	}

	return time.Duration(spent.Nano())
}

// memory returns the memory of the process itself, without the files that it maps.
func (m meter) memory() int64 { return harness.MemoryOfProcess(m.t, m.pid, "RssAnon") }

// costs is what a call took.
type costs struct {
	processor time.Duration
	memory    int64 // beyond what the process had before
	bytes     int   // of the unpacked body
	n         int
}

func (c costs) String() string {
	return fmt.Sprintf("%d parts, %d KB: %v, %d MiB",
		c.n, c.bytes>>10, c.processor.Round(time.Millisecond/10), c.memory>>20)
}

// growth is what an attack of n, of 2n and of 4n parts cost.
type growth [3]costs

func (g growth) String() string {
	once, fourfold := g[0], g[2]

	return fmt.Sprintf("%v; %v; %v; 4n takes %.1f times the time of n, and %.1f bytes of memory for each of its own",
		once, g[1], fourfold,
		float64(fourfold.processor)/float64(once.processor), float64(fourfold.memory)/float64(fourfold.bytes))
}

// measure carries out an attack. It waits for what the attack left to the process's
// background, and counts it.
func (m meter) measure(p target, a attack, n int) costs {
	before, held := m.processor(), m.memory()
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := held
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-tick.C:
				most = max(most, m.memory())
			}
		}
	}()

	size := a.send(p, n)
	m.rest()
	close(stop)

	return costs{processor: m.processor() - before, memory: <-peak - held, bytes: size, n: n}
}

// rest waits until the process is idle. On a busy machine, one that waits for the processor
// looks idle for a moment.
func (m meter) rest() {
	const moments = 3
	last := m.processor()
	for idle := 0; idle < moments; {
		harness.PauseFor(10 * time.Millisecond)
		now := m.processor()
		if now-last <= time.Millisecond {
			idle++
		} else {
			idle = 0
		}
		last = now
	}
}

// isBusy reports whether the process does more for a moment than an idle one does.
func (m meter) isBusy() bool {
	before := m.processor()
	harness.PauseFor(100 * time.Millisecond)

	return m.processor()-before > 30*time.Millisecond
}

// judge compares an attack of size n with one of 4n, where n is chosen so that it takes
// some 50 ms. It returns the fault, "" if there is none.
func (m meter) judge(p target, a attack, least time.Duration) (sizes growth, fault string) {
	once, twice, fourfold := &sizes[0], &sizes[1], &sizes[2]
	for n := a.n; ; n *= 2 {
		*once = m.measure(p, a, n)
		if once.processor >= least || once.bytes > costSizeMax/2 || a.most > 0 && 2*n > a.most {
			break
		}
	}
	*twice = m.measure(p, a, 2*once.n)

	// What the process does in its background, such as packing and collecting garbage,
	// falls into one measurement or another. What grows faster than its bytes does so
	// each time, whichever of the smaller ones it is compared with.
	for try := range costTries {
		if try > 0 {
			if again := m.measure(p, a, once.n); again.processor > once.processor {
				*once = again
			}
		}

		*fourfold, fault = m.measure(p, a, 4*once.n), ""
		if fourfold.processor > costRatioMax*max(once.processor, least) {
			fault = fmt.Sprintf("processor time grows faster than the bytes: %v, then %v, then %v",
				*once, *twice, *fourfold)
		}
		if fourfold.memory > costMemoryMax*int64(fourfold.bytes)+costSlack {
			fault += fmt.Sprintf(" it takes more than %d times its bytes of memory: %v", costMemoryMax, *fourfold)
		}
		if fault == "" {
			break
		}
	}

	return sizes, fault
}
