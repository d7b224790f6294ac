package queue

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"promptspool/spool/disk"
)

// Status is what the spool holds at one moment.
type Status struct {
	Events      int       `json:"events"`      // that wait to be acknowledged, including those being committed
	Bytes       int64     `json:"bytes"`       // of these events, as given to Append
	DiskBytes   int64     `json:"disk_bytes"`  // blocks of everything in the folder, including reserved ones
	BytesMax    int64     `json:"bytes_max"`   // the bound of DiskBytes
	Oldest      time.Time `json:"oldest"`      // when the oldest waiting event was appended; zero if none waits
	Frontier    uint64    `json:"frontier"`    // the lowest sequence that is not acknowledged
	Next        uint64    `json:"next"`        // the sequence of the next append
	Held        int       `json:"held"`        // events in the held lane
	Dead        int       `json:"dead"`        // events in the dead letters
	Dropped     int       `json:"dropped"`     // dead letters of limits that were dropped since the spool was opened
	Gaps        uint64    `json:"gaps"`        // events found lost since the spool was opened
	Generations int       `json:"generations"` // folders of events
	// Uncertain counts events that a crash took and that most likely were never
	// acknowledged to the app, since the spool was opened. They are not in Gaps.
	Uncertain uint64 `json:"uncertain"`
}

// Status returns what the spool holds. It looks at every file for DiskBytes, and reads
// none.
func (q *Queue) Status() Status {
	// Without a lock, because it may take long.
	disk := q.guard.walk()
	// Before mu: the lanes report to the spool, which takes mu, with their own lock held.
	held, dead := q.lanes.Events(LaneHeld), q.lanes.Events(LaneDead)

	q.mu.Lock()
	defer q.mu.Unlock()
	st := Status{
		Events:      q.usage.Events,
		Bytes:       q.usage.Bytes,
		BytesMax:    q.config.BytesMax,
		DiskBytes:   disk,
		Frontier:    q.frontier,
		Next:        q.next,
		Held:        held,
		Dead:        dead,
		Dropped:     q.dropped,
		Gaps:        q.gapEvents,
		Uncertain:   q.uncertain,
		Generations: len(q.generations),
	}
	if q.frontier < q.next {
		st.Oldest = q.oldestAt
	}
	return st
}

// Newest returns the sequence of the last appended event, and the latest known time of an
// append.
//
// The sequence is 0 if there never was an event. The time includes events in the lanes,
// and is zero if none is known. The newest generation is kept even when it is
// acknowledged, so that both survive a restart.
func (q *Queue) Newest() (seq uint64, at time.Time) {
	// Before mu, as in Status.
	held := q.lanes.Newest()

	q.mu.Lock()
	defer q.mu.Unlock()
	at = q.newestAt
	if held.After(at) {
		at = held
	}
	return q.next - 1, at
}

// Next returns the sequence that the next event will get.
func (q *Queue) Next() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next
}

// Run refreshes the metrics and syncs the cursor once a second. It returns nil when ctx
// ends or after Close. It returns an ErrFailed, which Failed delivers as well, when the
// process must end.
func (q *Queue) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()

	var rate rate
	for {
		q.refreshMetrics(&rate)
		newest, _ := q.Newest()

		select {
		case <-ctx.Done():
			return nil
		case <-q.closed:
			return nil
		case err := <-q.failed:
			// Put it back: Failed delivers it, too.
			q.failed <- err
			return err
		case <-tick.C:
		}

		// Nothing may be written to a folder that is gone, or that became read-only.
		if err := disk.Present(q.lock.folder, q.config.Dir); err != nil {
			_ = q.stopAccepting(err)
			continue
		}

		err := q.saveCursor()
		if err == nil {
			// newest is of a second ago: if it is unchanged, the spool is idle.
			err = q.shrink(newest + 1)
		}
		if err != nil {
			_ = q.fail(err)
			continue
		}
		q.guard.makeBallast()
	}
}

// saveCursor makes the frontier durable. After Close it does nothing, because the file is
// closed.
func (q *Queue) saveCursor() error {
	q.readMu.Lock()
	defer q.readMu.Unlock()

	q.mu.Lock()
	state, closing := [2]uint64{q.frontier, q.next}, q.closing
	q.mu.Unlock()
	if closing {
		return nil
	}

	return q.cursor.Save(state)
}

func (q *Queue) refreshMetrics(r *rate) {
	st, m, now := q.Status(), q.config.Metrics, q.config.Now()
	m.SpoolEvents.Set(float64(st.Events))
	m.SpoolBytes.Set(float64(st.Bytes))
	m.SpoolDiskBytes.Set(float64(st.DiskBytes))
	m.SpoolDiskBytesMax.Set(float64(st.BytesMax))
	if _, at := q.Newest(); !at.IsZero() {
		m.SpoolAccepted.Set(float64(at.UnixMilli()) / 1000)
	}

	setAside, _ := quarantined(q.config.Dir)
	m.SpoolQuarantined.Set(float64(len(setAside)))

	m.SpoolOldestSeconds.Set(0)
	if !st.Oldest.IsZero() {
		// The clock may have been set back since.
		m.SpoolOldestSeconds.Set(max(0, now.Sub(st.Oldest).Seconds()))
	}
	m.HeldEvents.Set(float64(st.Held))
	m.DeadLetters.Set(float64(st.Dead))

	q.mu.Lock()
	appended := q.appended
	q.mu.Unlock()
	m.SpoolOutageCapacity.Set(r.secondsFor(float64(st.BytesMax-st.DiskBytes), appended, now))
}

// rate is how many bytes arrive per second, smoothed over about a minute.
type rate struct {
	bytes     int64
	at        time.Time
	perSecond float64
}

// secondsFor updates the rate with the total of bytes that arrived by now, and returns
// how long space lasts; +Inf when nothing arrives.
func (r *rate) secondsFor(space float64, bytes int64, now time.Time) float64 {
	if seconds := now.Sub(r.at).Seconds(); !r.at.IsZero() && seconds > 0 {
		// An exponential average: a rate of a minute ago counts for about a third.
		weight := 1 - math.Exp(-seconds/60)
		r.perSecond += weight * (float64(bytes-r.bytes)/seconds - r.perSecond)
	}
	r.bytes, r.at = bytes, now

	// The average nears zero without reaching it.
	if r.perSecond < 0.5 {
		return math.Inf(1)
	}
	return max(0, space) / r.perSecond
}

// KeyUsage returns how many events of this key wait in the spool, and their bytes. Events
// that are being committed count; events in the lanes do not.
func (q *Queue) KeyUsage(key uint32) (events int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()

	t := q.usage.Keys[key]
	return t.Events, t.Bytes
}

// Keys returns, in order, the numbers of all keys that some event in the spool or in a
// lane needs. Any other key may be forgotten.
func (q *Queue) Keys() []uint32 {
	// Before mu: the lanes report to the spool, which takes mu, with their own lock held.
	keys := q.lanes.Keys(LaneHeld, LaneDead)

	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.usage.Keys {
		keys[key] = struct{}{}
	}
	return slices.Sorted(maps.Keys(keys))
}
