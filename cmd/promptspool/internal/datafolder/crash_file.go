package datafolder

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"promptspool/spool/disk"
	"promptspool/spool/rawlog"
)

// crashName is the file in a data folder that says why the last process ended, if it crashed.
const crashName = "crash"

// crashFile takes the stack of a crash. Badger reads its files through mappings, in its
// own goroutines as well, and a block that the disk cannot read is a fault there, which
// nothing can catch. The next process, which finds it in this file, reads every file
// before it maps it.
type crashFile struct {
	file *os.File
	last string // why the last process crashed; "" if it did not
}

// crashOutput has the runtime write crashes to the first file of this process: `up` has two roles.
var crashOutput sync.Once

// OpenCrashFile reads why the last process on a data folder crashed, and takes a crash of this one.
func OpenCrashFile(data string, logger *slog.Logger) (*crashFile, error) {
	file, err := os.OpenFile(filepath.Join(data, crashName), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	// The disk that cannot read this file is the fault that it would report.
	if disk.IsUnreadable(err) {
		text, err = []byte(faultMark+err.Error()), nil
	}
	// The runtime writes to one file only. In `up` both roles end with the process, so
	// one of their folders is enough to tell the next start.
	crashOutput.Do(func() {
		err = errors.Join(err, debug.SetCrashOutput(file, debug.CrashOptions{}))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", file.Name(), err), file.Close())
	}

	c := &crashFile{file, string(text)}
	if c.last != "" {
		first, _, _ := strings.Cut(c.last, "\n")
		logger.Error("the last process on this data folder crashed", "reason", first)
	}
	return c, nil
}

// DiskFailed reports whether the last process met a block that the disk could not read.
func (c *crashFile) DiskFailed() bool {
	return strings.Contains(c.last, "SIGBUS") || strings.Contains(c.last, faultMark)
}

// faultMark begins what note writes.
const faultMark = "the disk failed: "

// Note writes down that the process ends because of a fault that was caught.
func (c *crashFile) Note(err error) {
	if fault := (*rawlog.FaultError)(nil); errors.As(err, &fault) {
		_, _ = fmt.Fprintf(c.file, "%s%v\n", faultMark, fault)
	}
}

// Clear forgets the last crash, once its reason was dealt with.
func (c *crashFile) Clear() error { return c.file.Truncate(0) }

// Close closes the file. A crash is still written to it.
func (c *crashFile) Close() error { return c.file.Close() }
