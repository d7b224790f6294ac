package queue

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"promptspool/spool/disk"
	"runtime"
	"sync"
	"testing"
	"time"
)

func openQuiet(t *testing.T) *Queue {
	t.Helper()
	s, err := Open(Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}

	return s
}

// Rest waits until no generation is being sealed. Nobody may append in the meantime.
func (q *Queue) Rest() { q.waitForSeal() }

// LogOfBadger does what Badger does with the error of a table, word for word as db.go of Badger 4.9.6.
func (q *Queue) LogOfBadger(err error) {
	q.storeLog().Errorf("error flushing memtable to disk: %v, retrying", err)
}

// SaveCursor does what Run does every second.
func (q *Queue) SaveCursor() error { return q.saveCursor() }

// parkingContext closes parked when a goroutine first waits for the context.
type parkingContext struct {
	context.Context
	once   sync.Once
	parked chan struct{}
}

func (c *parkingContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.parked) })
	return c.Context.Done()
}

// Parking returns a context, and a channel that is closed when a goroutine waits for it.
func Parking(ctx context.Context) (context.Context, <-chan struct{}) {
	c := &parkingContext{Context: ctx, parked: make(chan struct{})}
	return c, c.parked
}

// stalled is a spool whose first commit hangs until release. More appends may park behind
// it.
type stalled struct {
	spool   *Queue
	leader  chan error // the outcome of the append that commits
	release func()
}

// stall returns a spool whose first commit is under way and hangs.
func stall(t *testing.T) stalled {
	t.Helper()
	s := openQuiet(t)
	// A first commit needs a generation, which waits until the one before is sealed.
	sealed := make(chan struct{})
	s.sealing = sealed

	leader := make(chan error, 1)
	go func() { leader <- s.Append(1, []byte("leader")) }()
	for leading := false; !leading; {
		s.mu.Lock()
		leading = s.leading && len(s.queue) == 0 // taken from the queue
		s.mu.Unlock()
		runtime.Gosched()
	}

	return stalled{s, leader, func() { close(sealed) }}
}

// follow starts an append that parks behind the stalled one.
func (st stalled) follow() <-chan error {
	queued := func() int {
		st.spool.mu.Lock()
		defer st.spool.mu.Unlock()
		return len(st.spool.queue)
	}

	before := queued()
	outcome := make(chan error, 1)
	go func() { outcome <- st.spool.Append(2, []byte("follower")) }()
	for queued() == before {
		runtime.Gosched()
	}
	return outcome
}

func TestCloseReleasesParkedAppends(t *testing.T) {
	st := stall(t)
	followers := []<-chan error{st.follow(), st.follow()}
	closed := make(chan error, 1)
	go func() { closed <- st.spool.Close() }()
	for _, f := range followers {
		if err := <-f; !errors.Is(err, ErrClosed) {
			t.Errorf("a parked append returns %v, want ErrClosed", err)
		}
	}

	st.release()
	if err := <-st.leader; err != nil {
		t.Errorf("the append whose commit was under way: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}

	if events, bytes := st.spool.KeyUsage(2); events != 0 || bytes != 0 {
		t.Errorf("refused events still count: %d events, %d bytes", events, bytes)
	}
}

func TestAnAppendThatHasTheTurnCommitsForOthers(t *testing.T) {
	s := openQuiet(t)

	// The turn is taken, so both appends queue. Then it is handed on as commitQueue does.
	s.mu.Lock()
	s.leading = true
	s.mu.Unlock()

	st := stalled{spool: s}
	first, second := st.follow(), st.follow()

	s.mu.Lock()
	s.queue[0].lead = true
	s.queue[0].turn <- nil
	s.mu.Unlock()

	if err := <-first; err != nil {
		t.Errorf("the append that has the turn: %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the append behind it: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAFailedCommitEndsTheSpool(t *testing.T) {
	s := openQuiet(t)
	ctx := context.Background()
	if err := s.Append(1, []byte("event 1")); err != nil {
		t.Fatal(err)
	}

	if err := s.writing.reader.Close(); err != nil { // every commit fails from here
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Append(1, []byte("event 2")); !errors.Is(err, ErrFailed) {
			t.Errorf("append: %v", err)
		}
	}

	if err := s.Run(ctx); !errors.Is(err, ErrFailed) {
		t.Errorf("run: %v", err)
	}
	if err := <-s.Failed(); !errors.Is(err, ErrFailed) {
		t.Errorf("failed: %v", err)
	}
	if status := s.Status(); status.Events != 1 || status.Next != 2 {
		t.Errorf("status %+v", status)
	}

	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A commit on a bad disk may hang until the process ends. The appends behind it must not.
func TestThoseBehindACommitThatHangsAreToldOfTheFailure(t *testing.T) {
	st := stall(t)
	waits := st.follow()
	_ = st.spool.fail(errors.New("input/output error"))
	if err := <-waits; !errors.Is(err, ErrFailed) {
		t.Errorf("append: %v", err)
	}

	st.release()
	if err := <-st.leader; !errors.Is(err, ErrFailed) {
		t.Errorf("the append that hung: %v", err)
	}
	if err := st.spool.Close(); err != nil {
		t.Error(err)
	}
	if err := st.spool.writing.reader.Close(); err != nil {
		t.Error(err)
	}
}

func TestAFailureThatBadgerOnlyLogsFailsTheAppend(t *testing.T) {
	s := openQuiet(t)
	if err := s.Append(1, []byte("event 1")); err != nil {
		t.Fatal(err)
	}
	defer s.writing.reader.Close() // a failed spool leaves it open

	s.LogOfBadger(errors.New("input/output error"))
	if err := s.Append(1, []byte("event 2")); !errors.Is(err, ErrFailed) {
		t.Errorf("append: %v", err)
	}
	if err := s.Bury(LaneEntry{Reason: "why", Entry: Entry{Seq: 1}}); !errors.Is(err, ErrFailed) {
		t.Errorf("bury: %v", err)
	}

	defer s.lanes.Close(ErrClosed)
	if err := <-s.Failed(); !errors.Is(err, ErrFailed) {
		t.Errorf("failed: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestOutageCapacityFollowsTheRate(t *testing.T) {
	var r rate
	now := time.Unix(1000, 0)
	r.secondsFor(1e9, 0, now)
	var got float64
	for i := range int64(600) {
		now = now.Add(time.Second)
		got = r.secondsFor(1e6, (i+1)*1000, now)
	}
	if got < 999 || got > 1010 {
		t.Errorf("1 MB of space at 1 kB/s lasts %v s, want about 1000", got)
	}
}

// Others may keep thousands of files in the data folder. The guard counts them only now and
// then, but always before it refuses an event.
func TestFilesOfOthersAreCountedNowAndThen(t *testing.T) {
	data := t.TempDir()
	dir := filepath.Join(data, "spool")
	g := newGuard(Config{Dir: dir, DataDir: data, DiskMax: 1 << 30})

	write := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 64<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	write(filepath.Join(dir, "ours"))
	write(filepath.Join(data, "templates", "1"))
	first := g.count(false)
	if spool := disk.Used(dir, ""); first.spool != spool || first.data != disk.Used(data, "") {
		t.Fatalf("counted %+v; the spool takes %d, the data folder %d", first, spool, disk.Used(data, ""))
	}

	write(filepath.Join(dir, "ours as well"))
	write(filepath.Join(data, "templates", "2"))

	whole, spool := disk.Used(data, ""), disk.Used(dir, "")
	if soon := g.count(false); soon.spool != spool || soon.data != spool+first.data-first.spool {
		t.Errorf("soon after, %+v; the spool takes %d, the others must be as before", soon, spool)
	}
	if fresh := g.count(true); fresh.data != whole {
		t.Errorf("before a refusal, %+v; the data folder takes %d", fresh, whole)
	}
}

// A person may give the data folder as a relative path. The spool's own files must not be
// taken for those of others, or half of --disk-max would be all that there is.
func TestTheSpoolIsNotCountedAsOthersUnderARelativeDataFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("data/spool", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("data/spool/ours", make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}

	c := Config{Dir: "data/spool", DataDir: "./data", DiskMax: 1 << 30}
	if err := c.defaults(); err != nil {
		t.Fatal(err)
	}
	if got, want := newGuard(c).count(true).data, disk.Used("data", ""); got != want {
		t.Errorf("%d bytes are counted in the data folder, which takes %d", got, want)
	}
}

func TestTheGenerationOfALargeCommitGoesOnceItIsAcknowledged(t *testing.T) {
	s, err := Open(Config{Dir: t.TempDir(), GenerationBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	if err := s.Append(1, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if got := s.writing.writer.Capacity(); got < 1<<20 {
		t.Errorf("a commit of 1 MiB went to a generation of %d bytes", got)
	}

	if err := s.Ack(s.next - 1); err != nil {
		t.Fatal(err)
	}
	if err := s.shrink(s.next); err != nil {
		t.Fatal(err)
	}
	if got := s.writing.writer.Capacity(); got != s.config.GenerationBytes || len(s.generations) != 1 {
		t.Errorf("when all is acknowledged there are %d generations, the newest with space for %d bytes",
			len(s.generations), got)
	}
}
