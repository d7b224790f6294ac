//go:build linux

package durability

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/disk/disktest"
)

// damageFaults is how many faults the short test makes, at random from all files and ways.
const damageFaults = 15

func TestAfterAnySingleFaultWhatIsMissingIsCounted(t *testing.T) {
	t.Parallel()
	w := newWreck(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	files := w.files(t)
	type way struct{ file, how string }
	var ways []way
	for _, f := range files {
		for _, how := range []string{"flip", "cut", "delete", "bad block"} {
			ways = append(ways, way{f, how})
		}
	}

	random.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })

	// The first fault loses something for certain; all others may hit what nobody needs any more.
	certain := slices.IndexFunc(ways, func(w way) bool {
		return w.how == "delete" && strings.HasSuffix(w.file, "/000001.vlog") // the second one is empty
	})
	ways[0], ways[certain] = ways[certain], ways[0]

	refused, lost := 0, 0
	for i := range harness.Rounds(t, damageFaults, 0.2) {
		way := ways[i%len(ways)]
		fault := fault{way.file, way.how, random.Float64(), random.IntN(8)}
		t.Run(strings.ReplaceAll(fault.String(), "/", ":"), func(t *testing.T) {
			missing, opened := w.survive(t, fault)
			if !opened {
				refused++
			} else if missing > 0 {
				lost++
			}
		})
	}

	t.Logf("%d faults were refused with a reason, %d lost events that were counted", refused, lost)
	if lost == 0 {
		t.Error("no fault lost anything; the test shows nothing")
	}
}

// wreck is a sidecar's data folder after a rich life that ended by SIGKILL, with the
// oracles that know what was acked.
type wreck struct {
	data      string
	good, bad *harness.Oracle // bad's writes are in the held lane
	upstream  string
}

// newWreck makes a folder with events of a good key in generations that were closed and
// in one that was not, some delivered before, some larger than a frame, and events of a
// refused key in the held lane.
func newWreck(t *testing.T) *wreck {
	t.Helper()
	w := &wreck{
		data:     t.TempDir(),
		upstream: harness.FreePort(t),
		good:     harness.StartOracle(t, harness.AdminKey),
		bad:      harness.StartOracle(t, "a key that no server knows"),
	}
	w.good.Spans, w.bad.Spans = 0, 0 // as many events as writes

	sidecar := harness.StartSidecar(t, w.data, w.upstream)
	w.bad.Loaded(sidecar, 1, 500, 10)

	server := harness.StartServer(t, t.TempDir(), w.upstream)
	harness.StartOracle(t, harness.AdminKey).Loaded(sidecar, 1, 500, 20) // delivered: nobody asks for them later
	sidecar.Emptied()
	server.Kill()
	sidecar.Stop() // after a kill the cursor might be older, and delivered events would wait again

	sidecar = harness.StartSidecar(t, w.data, w.upstream)
	w.good.Loaded(sidecar, 4, 1000, w.good.Count().Acked+30)
	w.good.Loaded(sidecar, 1, 4<<20, w.good.Count().Acked+1)
	sidecar.Kill()

	sidecar = harness.StartSidecar(t, w.data, w.upstream, "--drain", "0s")
	w.good.Loaded(sidecar, 4, 1000, w.good.Count().Acked+30)
	sidecar.Stop()

	sidecar = harness.StartSidecar(t, w.data, w.upstream)
	w.good.Loaded(sidecar, 4, 1000, w.good.Count().Acked+30)
	sidecar.Kill()

	if a, b := w.good.Count(), w.bad.Count(); a.Unsure+b.Unsure > 0 {
		t.Fatalf("some writes were not answered, so it is unknown what must be there: %+v %+v", a, b)
	}
	return w
}

// files returns the files of the spool and the keys, relative to the folder.
func (w *wreck) files(t *testing.T) (files []string) {
	t.Helper()
	for _, part := range []string{"spool", "keys"} {
		err := filepath.WalkDir(filepath.Join(w.data, part), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				name, _ := filepath.Rel(w.data, path)
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// survive starts a sidecar on a copy of the folder with one fault. It must end with a
// reason, or deliver: then every acked event is at the server as it was sent, or in a
// lane, or counted as lost. It returns how many are lost.
func (w *wreck) survive(t *testing.T, f fault) (missing int, opened bool) {
	data := w.copyWith(t, f)
	server := harness.StartPlainServer(t, w.upstream)
	sidecar := harness.BeginPlain(t, data, "127.0.0.1:0", "sidecar", "--name", "pod-1", "--upstream",
		"http://"+w.upstream)
	if !sidecar.Takes() {
		signal := sidecar.DiedOf() // waits for the end
		gaveReason := sidecar.Cmd.ProcessState.ExitCode() == 1 && strings.Contains(sidecar.Logged(), "promptspool: ")
		if signal > 0 || !gaveReason {
			t.Errorf("it ends with %v and gives no reason:\n%s", sidecar.Cmd.ProcessState, sidecar.Logged())
		}
		if f.how == "bad block" && filepath.Base(f.file) != "FORMAT" {
			t.Errorf("one bad block keeps it from starting: %s", harness.LastLine(sidecar.Logged()))
		}
		t.Logf("refused: %s", harness.LastLine(sidecar.Logged()))
		return 0, false
	}

	sidecar.Emptied()
	s := sidecar.SpoolStatus()
	a, b := w.good.Verify(server), w.bad.Count()
	away := a.Lost + b.Acked
	counted := int(s["gaps"].(float64) + s["uncertain"].(float64) + s["held"].(float64) + s["dead"].(float64))
	if away != counted || a.There+a.Lost != a.Acked || len(a.Different)+len(a.Twice) > 0 {
		t.Errorf("%d acked events are not at the server, of them %v; different %v, twice %v; the spool counts %d: %v",
			away, a.Missing, a.Different, a.Twice, counted, s)
	}

	if sidecar.Ended() {
		t.Error("the sidecar ended")
	}
	return int(s["gaps"].(float64)), true
}

// copyWith copies the folder and damages the copy.
func (w *wreck) copyWith(t *testing.T, f fault) (data string) {
	t.Helper()
	if f.how != "bad block" {
		data = filepath.Join(t.TempDir(), "data")
		harness.Tool(t, "cp", "--archive", "--sparse=always", w.data, data)
		if err := f.inflict(data); err != nil {
			t.Fatal(err)
		}
		return data
	}

	volume := disktest.MountVolume(t, disktest.FileSystems[f.bit%len(disktest.FileSystems)])
	data = filepath.Join(volume.Dir, "data")
	harness.Tool(t, "cp", "--archive", w.data, data)
	path := filepath.Join(data, f.file)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	at, err := f.offset(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, size, _ := dataParts(file); size > 0 { // a hole has no block
		volume.Break(path, at)
	}
	return data
}

// fault is one thing that a broken disk does to a file.
type fault struct {
	file string
	how  string  // flip one bit, cut, delete, bad block
	at   float64 // where in the data of the file
	bit  int
}

func (f fault) String() string {
	if f.how == "delete" {
		return f.how + " " + f.file
	}
	return fmt.Sprintf("%s %s at %.6f bit %d", f.how, f.file, f.at, f.bit)
}

func (f fault) inflict(data string) error {
	path := filepath.Join(data, f.file)
	if f.how == "delete" {
		return os.Remove(path)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()

	at, err := f.offset(file)
	if err != nil {
		return err
	}
	if f.how == "cut" {
		return file.Truncate(at)
	}

	b := make([]byte, 1)
	if _, err := file.ReadAt(b, at); errors.Is(err, io.EOF) {
		return nil // an empty file cannot be damaged in this way
	} else if err != nil {
		return err
	}
	b[0] ^= 1 << f.bit
	_, err = file.WriteAt(b, at)
	return err
}

// offset returns the place of the fault in a file.
func (f fault) offset(file *os.File) (int64, error) {
	parts, size, err := dataParts(file)
	at := int64(f.at * float64(size))
	for _, p := range parts {
		if at < p.size {
			return p.from + at, err
		}
		at -= p.size
	}
	return 0, err
}

// dataPart is a run of bytes that occupies the disk.
type dataPart struct{ from, size int64 }

// dataParts returns the data of a sparse file, without the zeros at its end, which most
// faults would hit.
func dataParts(file *os.File) (parts []dataPart, size int64, err error) {
	for end := int64(0); ; {
		from, err := file.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		if end, err = file.Seek(from, unix.SEEK_HOLE); err != nil {
			return nil, 0, err
		}
		parts = append(parts, dataPart{from, end - from})
		size += end - from
	}

	if n := len(parts); n > 0 {
		last := &parts[n-1]
		b := make([]byte, last.size)
		if _, err := file.ReadAt(b, last.from); err != nil {
			return nil, 0, err
		}
		zeros := last.size - int64(len(bytes.TrimRight(b, "\x00")))
		last.size -= zeros
		size -= zeros
	}
	return parts, size, nil
}
