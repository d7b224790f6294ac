package logging

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepeatedErrorsAreThinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(NewThin(slog.NewTextHandler(&out, nil)))
		lines := func() []string {
			defer out.Reset()
			return strings.Split(strings.TrimSpace(out.String()), "\n")
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

		time.Sleep(thinWindow) // of the bubble's time
		log.Error("it broke", "n", 1000)
		log.Error("it broke", "n", 1001)
		if said := lines(); len(said) != 1 || !strings.HasSuffix(said[0], "n=1000 repeated=995") {
			t.Errorf("after the window: %q", said)
		}
		time.Sleep(thinWindow)
		log.Error("it broke", "n", 1002)
		if said := lines(); len(said) != 1 || !strings.HasSuffix(said[0], "n=1002 repeated=1") {
			t.Errorf("an error that lasts: %q", said)
		}

		time.Sleep(2 * thinWindow)
		log.Error("it broke", "n", 1003)
		if said := lines(); len(said) != 1 || !strings.HasSuffix(said[0], "n=1003") {
			t.Errorf("after a while of quiet: %q", said)
		}
		for i := range 2 * thinMessages {
			log.Warn(fmt.Sprint("message ", i))
		}
		if n := linesWith(lines(), "message"); n != 2*thinMessages {
			t.Errorf("of %d different messages %d were logged", 2*thinMessages, n)
		}
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
