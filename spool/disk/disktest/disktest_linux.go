// Package disktest is a disk that breaks, for tests.
//
// A Disk is a folder, shown through FUSE by a separate process, in which the sync of a
// bad file fails. A Volume is a real file system whose device is a file of a Disk: a read
// of a bad block gets EIO and a mapping of it SIGBUS, and how many of its neighbours the
// kernel fails with it is up to the kernel and that file system.
package disktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	fuse "github.com/hanwen/go-fuse/v2/fs"
	protocol "github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"promptspool/metrics/partstest"
)

// folderVariable, in the environment, makes a test binary the process that serves this folder.
const folderVariable = "PROMPTSPOOL_TEST_BAD_DISK"

// BlockBytes is the size of a block.
const BlockBytes = 4096

// The names in a disk's folder.
const (
	diskName   = "disk"   // where it is mounted
	belowName  = "below"  // the folder that it shows
	volumeName = "volume" // where the volume in it is mounted, if there is one
)

// Disk is a mounted folder whose files can fail.
type Disk struct {
	Dir   string // where it is mounted
	Below string // the folder that it shows, where nothing fails
	t     testing.TB
	inUse bool // longer than the test
}

// Main serves a disk and ends the process, in one that Mount has started; elsewhere it does
// nothing. TestMain calls it first.
func Main() {
	folder := os.Getenv(folderVariable)
	if folder == "" {
		return
	}
	if err := serve(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Mount mounts an empty disk until the test ends.
func Mount(t testing.TB) *Disk {
	t.Helper()
	partstest.Need(t, "root")
	folder := t.TempDir()
	d := &Disk{Dir: filepath.Join(folder, diskName), Below: filepath.Join(folder, belowName), t: t}
	if err := errors.Join(os.Mkdir(d.Dir, 0o700), os.Mkdir(d.Below, 0o700)); err != nil {
		t.Fatal(err)
	}

	// A separate process serves the disk: a fault in a mapping of it must not stop the
	// process that answers.
	server := exec.Command(os.Args[0], "-test.run=^$")
	server.Env = append(os.Environ(), folderVariable+"="+folder)
	errs, err := os.Create(filepath.Join(folder, "errors"))
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	server.Stderr = errs
	stdin, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}

	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		_ = server.Wait()
		text, _ := os.ReadFile(errs.Name())
		t.Fatalf("cannot mount a disk through FUSE: %s; this test needs root and /dev/fuse", text)
	}
	t.Cleanup(func() {
		// A process that met a fault may still have files open.
		if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("the disk stays mounted: %v", err)
		}
		_ = stdin.Close()
		if !d.inUse {
			_ = server.Process.Kill()
			_ = server.Wait()
		}
	})

	return d
}

// badSync is the attribute of a file below that cannot be synced.
const badSync = "user.promptspool.badsync"

// BreakSync makes each sync of a file fail, from now on.
func (d *Disk) BreakSync(path string) {
	d.t.Helper()
	name, err := filepath.Rel(d.Dir, path)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := unix.Lsetxattr(filepath.Join(d.Below, name), badSync, []byte("1"), 0); err != nil {
		d.t.Fatalf("mark %s: %v", name, err)
	}
}

// badBlock begins the name of an attribute of a file below, which each of its bad blocks
// has; the offset follows. A folder in memory has such attributes on every kernel, other
// than those of users.
const badBlock = "trusted.promptspool.bad."

func badBlockAt(offset int64) string { return badBlock + strconv.FormatInt(offset, 10) }

// badBlocksOf returns where the bad blocks of a file below begin; it has none once it is gone.
func badBlocksOf(path string) (bad []int64, err error) {
	names := make([]byte, 8192)
	n, err := unix.Llistxattr(path, names)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	for name := range strings.SplitSeq(string(names[:n]), "\x00") {
		if text, ok := strings.CutPrefix(name, badBlock); ok {
			offset, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, err
			}
			bad = append(bad, offset)
		}
	}
	return bad, nil
}

// serve shows the disk of a folder until it is unmounted. It unmounts it when stdin ends: when the
// tests have ended, however they did.
func serve(folder string) error {
	disk := filepath.Join(folder, diskName)
	below := filepath.Join(folder, belowName)
	root := &fuse.LoopbackRoot{Path: below}
	var st syscall.Stat_t
	if err := syscall.Stat(below, &st); err != nil {
		return err
	}
	root.Dev = uint64(st.Dev)
	top := &node{fuse.LoopbackNode{RootData: root}}
	root.RootNode = top
	server, err := fuse.Mount(disk, top, &fuse.Options{
		MountOptions: protocol.MountOptions{
			DirectMountStrict: true,
			FsName:            "promptspool-tests",
			Name:              "disktest",
			MaxWrite:          1 << 20,
		},
	})
	if err != nil {
		return err
	}
	unmount := func() {
		// First the volume, which is usually gone or was never there.
		_ = syscall.Unmount(filepath.Join(folder, volumeName), syscall.MNT_DETACH)
		_ = syscall.Unmount(disk, syscall.MNT_DETACH)
	}
	signal.Ignore(syscall.SIGPIPE) // of tests that end at this moment
	if _, err := os.Stdout.Write([]byte("m")); err != nil {
		unmount()
		return err
	}

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		unmount()
	}()
	server.Wait()
	return nil
}

// node is a file or folder of the disk.
type node struct{ fuse.LoopbackNode }

// WrapChild makes what is in a folder of the disk a node as well.
func (n *node) WrapChild(_ context.Context, child fuse.InodeEmbedder) fuse.InodeEmbedder {
	return &node{fuse.LoopbackNode{RootData: child.(*fuse.LoopbackNode).RootData}}
}

// Open opens a file below.
func (n *node) Open(ctx context.Context, flags uint32) (fuse.FileHandle, uint32, syscall.Errno) {
	h, flags, errno := n.LoopbackNode.Open(ctx, flags)
	return n.wrap(h), flags, errno
}

// Create makes a file below.
func (n *node) Create(
	ctx context.Context, name string, flags, mode uint32, out *protocol.EntryOut,
) (*fuse.Inode, fuse.FileHandle, uint32, syscall.Errno) {
	child, h, flags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return child, child.Operations().(*node).wrap(h), flags, 0
}

// handle is what an open file can do. That it could have the kernel read past us is left out.
type handle interface {
	fuse.FileReader
	fuse.FileWriter
	fuse.FileFlusher
	fuse.FileReleaser
	fuse.FileFsyncer
	fuse.FileAllocater
	fuse.FileLseeker
	fuse.FileSetattrer
}

func (n *node) wrap(h fuse.FileHandle) fuse.FileHandle {
	if h == nil {
		return nil
	}
	return &file{h.(handle), n}
}

// file is an open file of the disk.
type file struct {
	handle
	node *node
}

// Read fails if any of the bytes are in a bad block.
func (f *file) Read(ctx context.Context, dest []byte, offset int64) (protocol.ReadResult, syscall.Errno) {
	bad, err := badBlocksOf(filepath.Join(f.node.RootData.Path, f.node.Path(nil)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return nil, syscall.EIO
	}
	for _, block := range bad {
		if block < offset+int64(len(dest)) && offset < block+BlockBytes {
			return nil, syscall.EIO
		}
	}
	return f.handle.Read(ctx, dest, offset)
}

// Write makes the bad blocks that it overwrites good again, as a disk does that has spare
// ones.
func (f *file) Write(ctx context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	path := filepath.Join(f.node.RootData.Path, f.node.Path(nil))
	bad, err := badBlocksOf(path)
	for _, block := range bad {
		if offset <= block && block+BlockBytes <= offset+int64(len(data)) {
			err = errors.Join(err, unix.Lremovexattr(path, badBlockAt(block)))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 0, syscall.EIO
	}
	return f.handle.Write(ctx, data, offset)
}

// Fsync fails if the file cannot be synced.
func (f *file) Fsync(context.Context, uint32) syscall.Errno {
	_, err := unix.Lgetxattr(filepath.Join(f.node.RootData.Path, f.node.Path(nil)), badSync, nil)
	if err == nil {
		return syscall.EIO
	}
	return 0 // there is no power cut here that would need the disk below
}
