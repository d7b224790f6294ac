// Package datafolder knows the layout of a role's data folder, and of the folder of `up`, which holds both.
package datafolder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"promptspool/api/ops"
	"promptspool/spool/disk"
	"promptspool/spool/rawlog"
)

// UpRoles are the roles that `up` runs, each in a folder of this name within its own.
var UpRoles = []string{"server", "sidecar"}

// Archive returns the folder of the Badger archive in a server's data folder.
func Archive(data string) string { return filepath.Join(data, "archive") }

// Spool returns the folder of the spool in a sidecar's data folder.
func Spool(data string) string { return filepath.Join(data, "spool") }

// IsUp reports whether a folder is that of `up`. A role's own data folder never is, whatever else it holds.
func IsUp(data string) bool {
	// A role's folder may hold a folder called server: what is its own decides.
	own := []string{filepath.Join(data, ops.SocketName), Archive(data), Spool(data)}
	return !slices.ContainsFunc(own, exists) &&
		slices.ContainsFunc(UpRoles, func(role string) bool { return exists(filepath.Join(data, role)) })
}

// OfRole returns the data folder of a role: the one given, or that role's within the folder of `up`.
func OfRole(data, role string) (string, error) {
	if !IsUp(data) {
		return data, nil
	}

	folder := filepath.Join(data, role)
	if !exists(folder) {
		return "", fmt.Errorf("%s has no folder %s: give the data folder of a %s", data, role, role)
	}
	return folder, nil
}

// ServerOf returns the URL of the server of `up` on a data folder, and the key that is kept there.
//
// The URL is valid without a key as well.
func ServerOf(ctx context.Context, data string) (url, key string, err error) {
	var at struct{ URL string }
	if err := ops.Control(ctx, filepath.Join(data, "server"), "GET", "/address", nil, &at); err != nil {
		return "", "", errors.New("its server does not answer; start `promptspool up` there")
	}

	path := filepath.Join(data, "key")
	text, err := os.ReadFile(path)
	if info, _ := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode()&0o077 != 0 {
		return at.URL, "", fmt.Errorf("other users can open %s; make it yours alone with chmod 600", path)
	}
	return at.URL, strings.TrimSpace(string(text)), err
}

// Folder is the data folder of this process. It is locked, which keeps a process of the other role from taking the
// control socket; the kernel releases the lock when the process ends.
//
// It takes the stack of a crash. Badger reads its files through mappings, in its own goroutines as well, and a block
// that the disk cannot read is a fault there, which nothing can catch. The next process, which finds it in this
// folder, reads every file before it maps it.
type Folder struct {
	lock, crash *os.File
	last        string // why the last process crashed; "" if it did not
}

// Open creates a role's data folder if it does not exist, and locks it.
//
// It logs why the last process on it crashed, and rejects one that a process of the other role has filled.
func Open(data, role string, logger *slog.Logger) (*Folder, error) {
	lock, err := lockFolder(data, role)
	if err != nil {
		return nil, err
	}
	f := &Folder{lock: lock}
	if err := f.openCrash(data, logger); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// lockFolder makes and locks a folder.
func lockFolder(data, role string) (*os.File, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, inFolder(data, err)
	}
	own, foreign, other := Archive(data), Spool(data), "sidecar"
	if role == other {
		own, foreign, other = foreign, own, "server"
	}
	if exists(foreign) && !exists(own) {
		return nil, fmt.Errorf("--data %s: it is the data folder of a %s; give this %s another one", data, other, role)
	}

	lock, err := disk.LockFolder(data)
	if err == nil {
		return lock, nil
	}

	if errors.Is(err, disk.ErrLocked) {
		err = fmt.Errorf("it is in use by another process (%s); stop that one first, or choose another folder",
			holderOf(data))
	}
	return nil, inFolder(data, err)
}

// inFolder says in which data folder something failed.
func inFolder(data string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w; the folder may be another user's: run promptspool as that user, "+
			"or give the folder to this one with chown -R", err)
	}
	return fmt.Errorf("--data %s: %w", data, err)
}

// holderOf describes the process that has a data folder open.
func holderOf(data string) string {
	for _, dir := range []string{Archive(data), Spool(data)} {
		if pid, err := os.ReadFile(filepath.Join(dir, "LOCK")); err == nil && strings.TrimSpace(string(pid)) != "" {
			return "pid " + strings.TrimSpace(string(pid))
		}
	}

	return "its pid is unknown"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// crashName is the file in a data folder that says why the last process ended, if it crashed.
const crashName = "crash"

// crashOutput has the runtime write crashes to the first file of this process: `up` has two roles.
var crashOutput sync.Once

// openCrash reads why the last process crashed, and takes a crash of this one.
func (f *Folder) openCrash(data string, logger *slog.Logger) (err error) {
	f.crash, err = os.OpenFile(filepath.Join(data, crashName), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return inFolder(data, err)
	}
	text, err := io.ReadAll(io.LimitReader(f.crash, 1<<20))
	// The disk that cannot read this file is the fault that it would report.
	if disk.IsUnreadable(err) {
		text, err = []byte(faultMark+err.Error()), nil
	}
	// The runtime writes to one file only. In `up` both roles end with the process, so
	// one of their folders is enough to tell the next start.
	crashOutput.Do(func() {
		err = errors.Join(err, debug.SetCrashOutput(f.crash, debug.CrashOptions{}))
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", f.crash.Name(), err)
	}

	f.last = string(text)
	if first, _, _ := strings.Cut(f.last, "\n"); f.last != "" {
		logger.Error("the last process on this data folder crashed", "reason", first)
	}
	return nil
}

// DiskFailed reports whether the last process met a block that the disk could not read.
func (f *Folder) DiskFailed() bool {
	return strings.Contains(f.last, "SIGBUS") || strings.Contains(f.last, faultMark)
}

// faultMark begins what note writes.
const faultMark = "the disk failed: "

// Note writes down that the process ends because of a fault that was caught.
func (f *Folder) Note(err error) {
	if fault := (*rawlog.FaultError)(nil); errors.As(err, &fault) {
		_, _ = fmt.Fprintf(f.crash, "%s%v\n", faultMark, fault)
	}
}

// Clear forgets the last crash, once its reason was dealt with.
func (f *Folder) Clear() error { return f.crash.Truncate(0) }

// Close closes the folder. A crash is still written to it.
func (f *Folder) Close() error { return errors.Join(f.crash.Close(), f.lock.Close()) }
