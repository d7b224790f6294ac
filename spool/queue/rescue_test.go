package queue_test

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"promptspool/spool/queue"
)

// examined counts how often the raw files of a generation are searched for events that
// Badger does not return.
func examined() (setting func(*queue.Config), times *int) {
	times = new(int)
	count := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.MessageKey && strings.Contains(a.Value.String(), "looked for in its raw files") {
			*times++
		}
		return a
	}
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ReplaceAttr: count}))

	return func(c *queue.Config) { c.Logger = log }, times
}

func TestADamagedGenerationIsSearchedOnceForAllItsEvents(t *testing.T) {
	dir := closed(t)
	for _, n := range []string{"event 2", "event 4", "event 5", "event 9"} {
		flip(t, dir, "*.vlog", at(n, 8)) // Badger's checksum behind the event
	}
	flip(t, dir, "*.vlog", at("event 7", 6)) // its payload

	log, times := examined()
	s := open(t, dir, log)
	for range 3 {
		wantTexts(t, s, without(10, 7))
	}
	if st := s.Status(); st.Gaps != 1 || *times != 1 {
		t.Errorf("%d events are counted as lost, the files were searched %d times", st.Gaps, *times)
	}

	ack(t, s, 10)
	if st := s.Status(); st.Events != 0 {
		t.Errorf("%+v", st)
	}
}

func TestARescuedEventKeepsItsPlaceAndItsTurn(t *testing.T) {
	dir := closed(t)
	flip(t, dir, "*.vlog", at("event 3", 8))
	flip(t, dir, "*.vlog", at("event 4", 8))
	whole, s := open(t, closed(t)), open(t, dir)

	for from := uint64(1); from <= 10; from += 3 {
		want, err := await(t.Context(), whole, from, 3, 16) // two events of 7 bytes
		if err != nil {
			t.Fatal(err)
		}
		got, err := await(t.Context(), s, from, 3, 16)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) || got[0].Seq != want[0].Seq || got[0].Key != want[0].Key ||
			string(got[0].Data) != string(want[0].Data) || got[0].At.IsZero() {
			t.Errorf("from %d the damaged spool gives %v, an intact one %v", from, got, want)
		}
	}
}

func TestAGenerationThatIsDamagedUnderARunningSpoolIsRebuilt(t *testing.T) {
	table := func(t *testing.T, dir string) { flip(t, dir, "*.sst", byteAt(40)) }
	seal := func(t *testing.T, dir string) { flip(t, dir, "SEAL", byteAt(7)) }
	valueLog := func(t *testing.T, dir string) { flip(t, dir, "*.vlog", byteAt(2)) }

	for name, test := range map[string]struct {
		damage func(t *testing.T, dir string)
		want   []string
	}{
		"its table":     {table, numbered(20)},
		"its SEAL":      {seal, numbered(20)},
		"its value log": {valueLog, numbered(20)},
		"its table and a payload": {func(t *testing.T, dir string) {
			table(t, dir)
			flip(t, dir, "*.vlog", at("event 2", 6))
		}, without(20, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, generationBytes(900)) // a few events each
			appendAll(t, s, 7, numbered(20)...)
			test.damage(t, dir)
			wantTexts(t, s, test.want)
			appendAll(t, s, 7, "new")
			if st := s.Status(); st.Gaps != uint64(20-len(test.want)) {
				t.Errorf("%+v", st)
			}

			copied := open(t, copyDir(t, dir))
			wantTexts(t, copied, append(slices.Clone(test.want), "new"))
			ack(t, s, 21)
			if st := s.Status(); st.Events != 0 || st.Generations > 2 {
				t.Errorf("status after everything was acknowledged: %+v", st)
			}
		})
	}
}

func TestDamageUnderTheGenerationThatIsWrittenIsNoLossEither(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	appendAll(t, s, 7, numbered(5)...)
	flip(t, dir, "*.vlog", at("event 4", 8))
	wantTexts(t, s, numbered(5))
	appendAll(t, s, 7, numbered(10)[5:]...)
	flip(t, dir, "*.vlog", at("event 8", 8)) // appended since the files were searched
	wantTexts(t, s, numbered(10))
	if st := s.Status(); st.Gaps != 0 {
		t.Errorf("%+v", st)
	}
}
