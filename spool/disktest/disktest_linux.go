// Package disktest is a disk that breaks, for tests: a folder, shown through FUSE by a process of its
// own. A read of a bad block gets EIO and a mapping of it SIGBUS, while its neighbours can be read; a
// sync of a bad file gets EIO as well.
package disktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	fuse "github.com/hanwen/go-fuse/v2/fs"
	protocol "github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"promptspool/metrics/parts"
)

// folderVariable, in the environment, makes a test binary the process that serves this folder.
const folderVariable = "PROMPTSPOOL_TEST_BAD_DISK"

// BlockBytes is the size of a block.
const BlockBytes = 4096

// Disk is a mounted disk with bad blocks.
type Disk struct {
	Dir   string // where it is mounted
	Below string // the folder that it shows, where all blocks are good
	t     testing.TB
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
	parts.Need(t, "root")
	folder := t.TempDir()
	d := &Disk{Dir: filepath.Join(folder, "disk"), Below: filepath.Join(folder, "below"), t: t}
	if err := errors.Join(os.Mkdir(d.Dir, 0o700), os.Mkdir(d.Below, 0o700)); err != nil {
		t.Fatal(err)
	}

	// A process of its own serves the disk: a fault in a mapping of it must not stop who answers.
	server := exec.Command(os.Args[0], "-test.run=^$")
	server.Env = append(os.Environ(), folderVariable+"="+folder)
	var errs strings.Builder
	server.Stderr = &errs
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
		t.Fatalf("cannot mount a disk through FUSE: %s; this test needs root and /dev/fuse", errs.String())
	}
	t.Cleanup(func() {
		// What met a fault may have files open still.
		if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("the disk stays mounted: %v", err)
		}
		_ = stdin.Close()
		_ = server.Process.Kill()
		_ = server.Wait()
	})

	return d
}

// badBlocks is the attribute of a file below that lists its bad blocks: a renamed file keeps it, a new one has none.
const badBlocks = "user.promptspool.bad"

// Break makes the block of a file with this offset unreadable, from the next opening of the file on.
func (d *Disk) Break(path string, offset int64) {
	d.t.Helper()
	name, err := filepath.Rel(d.Dir, path)
	if err != nil {
		d.t.Fatal(err)
	}

	path = filepath.Join(d.Below, name)
	bad, err := badBlocksOf(path)
	if err != nil {
		d.t.Fatal(err)
	}
	text, err := json.Marshal(append(bad, offset/BlockBytes*BlockBytes))
	if err != nil {
		d.t.Fatal(err)
	}
	if err := unix.Lsetxattr(path, badBlocks, text, 0); err != nil {
		d.t.Fatalf("mark %s: %v; the file system of %s must have extended attributes", path, err, os.TempDir())
	}
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

// Heal makes all blocks readable again.
func (d *Disk) Heal() {
	d.t.Helper()
	err := filepath.WalkDir(d.Below, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := unix.Lremovexattr(path, badBlocks); !errors.Is(err, unix.ENODATA) {
			return err
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// badBlocksOf reads where the bad blocks of a file below begin; it has none once it is gone.
func badBlocksOf(path string) (bad []int64, err error) {
	text := make([]byte, 4096)
	n, err := unix.Lgetxattr(path, badBlocks, text)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return bad, json.Unmarshal(text[:n], &bad)
}

// serve shows the disk of a folder until it is unmounted. It unmounts it when stdin ends: when the
// tests have ended, however they did.
func serve(folder string) error {
	disk := filepath.Join(folder, "disk")
	below := filepath.Join(folder, "below")
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
	unmount := func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) }
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

// Read fails if any of the bytes lie in a bad block.
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

// Fsync fails if the file cannot be synced.
func (f *file) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	_, err := unix.Lgetxattr(filepath.Join(f.node.RootData.Path, f.node.Path(nil)), badSync, nil)
	if err == nil {
		return syscall.EIO
	}
	return f.handle.Fsync(ctx, flags)
}
