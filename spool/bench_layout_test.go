package spool

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

const (
	layoutVariable = "SPOOL_LAYOUT"
	layoutEvents   = 131_072
	layoutBytes    = 4096
	layoutBatch    = 16 // events of a commit
)

// BenchmarkLayouts compares the generations with a queue in one Badger database. It appends
// 512 MiB that nobody reads, then acknowledges everything. It prints a table, each row
// measured in a process of its own.
func BenchmarkLayouts(b *testing.B) {
	if name := os.Getenv(layoutVariable); name != "" {
		measureLayout(b, name)
		return
	}

	fmt.Printf("\n%-13s %10s %9s %9s %9s %9s %10s %10s\n",
		"layout", "events/s", "p99", "anon MiB", "written", "disk", "disk after", "after")
	for _, name := range []string{"generations", "one database"} {
		child := exec.Command(os.Args[0],
			"-test.run=^$", "-test.bench=^BenchmarkLayouts$", "-test.benchtime=1x")
		child.Env = append(os.Environ(), layoutVariable+"="+name)
		out, err := child.CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, name) {
				fmt.Print(line)
			}
		}
	}
}

// layout is a queue that can be measured.
type layout interface {
	append(batch [][]byte) error
	ackAll() error
	Close() error
}

// measureLayout fills and empties one layout, and prints its row of the table.
func measureLayout(b *testing.B, name string) {
	dir := b.TempDir()
	q := openLayout(b, name, dir)
	defer q.Close()
	before := writtenBytes(b)

	var took []time.Duration
	start := time.Now()
	for from := 0; from < layoutEvents; from += layoutBatch {
		batch := make([][]byte, layoutBatch)
		for i := range batch {
			batch[i] = make([]byte, layoutBytes)
			binary.BigEndian.PutUint64(batch[i], uint64(from+i))
		}
		begun := time.Now()
		if err := q.append(batch); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}

	rate := layoutEvents / time.Since(start).Seconds()
	debug.FreeOSMemory()
	anon := residentAnonymous(b)
	full := diskBytes(dir, "")

	start = time.Now()
	if err := q.ackAll(); err != nil {
		b.Fatal(err)
	}
	acked := time.Since(start)
	written := writtenBytes(b) - before

	slices.Sort(took)
	const payload = layoutEvents * layoutBytes
	fmt.Printf("\n%-13s %10.0f %9s %9.1f %9.3f %9.3f %6.1f MiB %10s\n",
		name,
		rate,
		took[len(took)*99/100].Round(10*time.Microsecond),
		float64(anon)/(1<<20),
		float64(written)/payload,
		float64(full)/payload,
		float64(diskBytes(dir, ""))/(1<<20),
		acked.Round(time.Millisecond))
}

func openLayout(b *testing.B, name, dir string) layout {
	b.Helper()
	if name == "generations" {
		s, err := Open(Config{Dir: filepath.Join(dir, "spool"), BytesMax: 1 << 40})
		if err != nil {
			b.Fatal(err)
		}
		return generationsLayout{s}
	}

	// Badger's defaults, except for the caches and the sizes of files.
	db, err := badger.Open(badger.DefaultOptions(dir).
		WithSyncWrites(true).
		WithValueThreshold(32).
		WithValueLogFileSize(64 << 20).
		WithMemTableSize(16 << 20).
		WithNumMemtables(2).
		WithBlockCacheSize(0).
		WithCompression(options.None).
		WithDetectConflicts(false).
		WithNumCompactors(2).
		WithLogger(nil))
	if err != nil {
		b.Fatal(err)
	}

	return &databaseLayout{DB: db}
}

type generationsLayout struct{ *Spool }

func (g generationsLayout) append(batch [][]byte) error {
	return g.Append(context.Background(), 1, batch...)
}

func (g generationsLayout) ackAll() error { return g.Ack(layoutEvents) }

// databaseLayout is a queue in one database. Each event has a key, which is deleted when
// the event is acknowledged.
type databaseLayout struct {
	*badger.DB
	next uint64
}

func (d *databaseLayout) append(batch [][]byte) error {
	return d.Update(func(txn *badger.Txn) error {
		for _, data := range batch {
			if err := txn.Set(binary.BigEndian.AppendUint64(nil, d.next), data); err != nil {
				return err
			}
			d.next++
		}
		return nil
	})
}

// ackAll deletes everything, then compacts the database to free its disk space.
func (d *databaseLayout) ackAll() error {
	deletes := d.NewWriteBatch()
	defer deletes.Cancel()
	for seq := range d.next {
		if err := deletes.Delete(binary.BigEndian.AppendUint64(nil, seq)); err != nil {
			return err
		}
	}
	if err := deletes.Flush(); err != nil {
		return err
	}

	// Badger compacts only what it has flushed, and Close flushes.
	opts := d.Opts()
	if err := d.Close(); err != nil {
		return err
	}
	var err error
	if d.DB, err = badger.Open(opts); err != nil {
		return err
	}

	if err := d.Flatten(2); err != nil {
		return err
	}
	for {
		if err := d.RunValueLogGC(0.5); errors.Is(err, badger.ErrNoRewrite) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// writtenBytes returns how many bytes this process has sent to the disk.
func writtenBytes(b *testing.B) (n int64) { return numberIn(b, "/proc/self/io", "write_bytes:") }

// residentAnonymous returns this process's memory in bytes, without the pages of files.
func residentAnonymous(b *testing.B) int64 { return numberIn(b, "/proc/self/status", "RssAnon:") << 10 }

// numberIn returns the number behind name in a file of /proc.
func numberIn(b *testing.B, path, name string) (n int64) {
	b.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name)
	if _, err := fmt.Sscan(rest, &n); err != nil {
		b.Fatalf("%s in %s: %v", name, path, err)
	}

	return n
}
