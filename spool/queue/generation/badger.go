package generation

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"promptspool/spool/disk"
)

const (
	memTableBytes = 2 << 20
	// tableBytes is half of what Badger allocates to make a table of a memtable, which takes
	// some 60 bytes for each frame. It grows where that is too little.
	tableBytes = 512 << 10
	// rebuildMemTableBytes is for a rebuild, which commits each event alone: the marks of so
	// many commits take space in the log.
	rebuildMemTableBytes = 4 << 20

	// valueThreshold sends every frame, which is longer, to the value log, and keeps
	// Badger's own end-of-transaction mark, at most 20 bytes, out of it. With 0 that mark
	// would go to the value log too, and Badger 4.9.6 would then drop the whole
	// write-ahead log when it replays it after a crash.
	valueThreshold = 32

	// CommitBytesMax bounds what one transaction holds: an event of 32 MiB and its
	// envelope.
	CommitBytesMax = 36 << 20
	// CommitFramesMax bounds the frames of one transaction. It stays below Badger's bound
	// on the entries of one: 15 % of the memtable in nodes of 96 bytes is 3,276. Badger's
	// bound in bytes counts keys and pointers only, some 50 bytes a frame, and is wider.
	CommitFramesMax = 3072
)

// storeOptions are the options that all our Badger databases share. There is no cache, no
// compression (frames must be raw in the files) and no conflict detection (there is one
// writer).
//
// The value log must never outgrow twice valueLogBytes: Badger maps that much when it
// makes the file. When a write goes beyond, it remaps without taking its own lock, while
// others read from the old mapping. It rolls the file only between transactions, so
// valueLogBytes must be at least what a transaction may hold.
func storeOptions(dir string, valueLogBytes int64, log badger.Logger) badger.Options {
	return badger.DefaultOptions(dir).
		WithSyncWrites(false). // see mapped
		WithValueThreshold(valueThreshold).
		WithValueLogFileSize(valueLogBytes).
		WithMemTableSize(memTableBytes).
		WithNumMemtables(1).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithCompression(options.None).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithVerifyValueChecksum(true).
		WithChecksumVerificationMode(options.OnTableAndBlockRead).
		WithNumVersionsToKeep(1).
		WithLogger(log)
}

// Log passes Badger's log on to ours, and reports the failure that Badger only logs.
//
// That is a memtable that it cannot write out, which it retries forever. Badger calls the
// methods from its own goroutines, too.
type Log struct {
	Logger *slog.Logger
	Fail   func(error) error // must be safe for concurrent use; what it returns is ignored
}

// Errorf logs an error of Badger's as a warning. It fails the spool if the error means
// that a generation cannot be closed.
func (l Log) Errorf(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	l.Logger.Warn("badger: " + text)

	if strings.HasPrefix(text, "error flushing memtable") {
		_ = l.Fail(fmt.Errorf("badger: %s", text))
	}
}

// Warningf logs a warning of Badger's.
func (l Log) Warningf(format string, args ...any) {
	l.Logger.Warn("badger: " + strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// Infof logs what Badger did, at debug level.
func (l Log) Infof(format string, args ...any) { l.debugf(format, args...) }

// Debugf logs details of Badger's, at debug level.
func (l Log) Debugf(format string, args ...any) { l.debugf(format, args...) }

func (l Log) debugf(format string, args ...any) {
	// Badger logs a lot, and formatting it would cost more than dropping it.
	if l.Logger.Enabled(context.Background(), slog.LevelDebug) {
		l.Logger.Debug("badger: " + strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}

// tighten removes the access of other users to Badger's files, which it makes with mode
// 0666 less the umask. It also makes their names durable, which Badger leaves out for the
// value log.
func tighten(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	// A file that is gone was Badger's own to remove, and needs no mode.
	for _, f := range files {
		if f.Type().IsRegular() {
			if err := os.Chmod(filepath.Join(dir, f.Name()), 0o600); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
	}
	return disk.SyncDir(dir)
}

// generationOptions are the options of a generation. Nothing compacts, because there is
// at most one table. The value log has space for a full generation and one more
// transaction, so that it is one file which never grows beyond its mapping.
func generationOptions(dir string, generationBytes int64, log badger.Logger) badger.Options {
	return storeOptions(dir, valueLogBytes(generationBytes), log).
		WithNumCompactors(0).
		WithBaseTableSize(tableBytes)
}

func valueLogBytes(generationBytes int64) int64 {
	return generationBytes + CommitBytesMax + framesMax*frameOverheadBytes
}
