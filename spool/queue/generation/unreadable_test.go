package generation_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"promptspool/spool/disk/disktest"
	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/generation"
)

func TestMain(m *testing.M) {
	disktest.InMemory()
	os.Exit(m.Run())
}

// What is whole beside a bad block stays so when another program meets the block after the
// files were examined: the kernel then fails its neighbours as well.
func TestWhatIsWholeBesideABadBlockCanBeReadAgain(t *testing.T) {
	volume := disktest.MountVolume(t, "ext4")
	w, err := generation.Create(filepath.Join(volume.Dir, "unplaced"), 1, 4<<20, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	name, err := w.Place(1)
	if err != nil {
		t.Fatal(err)
	}
	const events = 400
	txn := w.Begin()
	for seq := range uint64(events) {
		e := generation.NewEvent([][]byte{bytes.Repeat([]byte("x"), 5000)})
		err = errors.Join(err, txn.Add(frame.EventKey{Seq: 1 + seq, Key: 7, At: time.Unix(1, 0)}, e))
	}
	if err := errors.Join(err, txn.Commit(), w.Close()); err != nil {
		t.Fatal(err)
	}
	txn.Discard()

	dir := filepath.Join(volume.Dir, name)
	valueLog := filepath.Join(dir, "000001.vlog")
	volume.Break(valueLog, 1_600_000)
	ev, err := generation.Examine(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole := ev.Len()
	if whole < events-2 || whole == events {
		t.Errorf("%d of %d events are whole beside a bad block", whole, events)
	}

	meet := func() {
		volume.Forget(valueLog)
		if err := exec.Command("cat", valueLog).Run(); err == nil {
			t.Error("the file can be read")
		}
	}
	meet()
	for _, seq := range ev.Sequences() {
		if _, err := ev.Read(seq); err != nil {
			t.Errorf("event %d: %v", seq, err)
		}
	}

	meet()
	kept, err := ev.Rebuild(filepath.Join(volume.Dir, "rebuilt"), 0, events+1, quiet(t))
	if err != nil || kept != whole {
		t.Errorf("%d of %d events were copied (%v)", kept, whole, err)
	}
}
