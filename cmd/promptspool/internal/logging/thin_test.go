package logging

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepeatedErrorsAreThinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer // a goroutine of the timer reports the end of a window
		log := slog.New(NewThin(slog.NewTextHandler(&out, nil)))
		lines := func() []string {
			return strings.Split(strings.TrimSpace(out.take()), "\n")
		}
		for i := range 1000 {
			log.Error("it broke", "n", i)
			log.Info("it goes on")
		}
		log.With("part", "x").Warn("another thing")
		said := lines()
		if errors := linesWith(said, "it broke"); errors != thinBurst {
			t.Errorf("%d errors were logged at once", errors)
		}
		if linesWith(said, "it goes on") != 1000 || linesWith(said, "another thing") != 1 {
			t.Error("a line that is not a repeated error was left out")
		}

		pass := func(d time.Duration) { // of the bubble's time
			time.Sleep(d)
			synctest.Wait()
		}
		pass(thinWindow + time.Second)
		if said := lines(); len(said) != 1 || !strings.Contains(said[0], "n=999 repeated=995") {
			t.Errorf("at the end of the window: %q", said)
		}
		log.Error("it broke", "n", 1000)
		pass(thinWindow)
		if said := lines(); len(said) != 1 || !strings.Contains(said[0], "n=1000 repeated=1") {
			t.Errorf("an error that lasts: %q", said)
		}

		pass(2 * thinWindow)
		log.Error("it broke", "n", 1001)
		if said := lines(); len(said) != 1 || !strings.HasSuffix(said[0], "n=1001") {
			t.Errorf("after a while of quiet: %q", said)
		}
		for i := range 2 * thinMessages {
			log.Warn(fmt.Sprint("message ", i))
		}
		if n := linesWith(lines(), "message"); n != 2*thinMessages {
			t.Errorf("of %d different messages %d were logged", 2*thinMessages, n)
		}
		pass(3 * thinWindow)
	})
}

func linesWith(lines []string, text string) (n int) {
	for _, l := range lines {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // under mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// take empties the buffer and returns its content.
func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.buf.Reset()
	return b.buf.String()
}
