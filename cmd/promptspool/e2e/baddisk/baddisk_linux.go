// Package baddisk serves a folder through FUSE in which reads and syncs fail as spool/disk/disktest marks
// its files.
package baddisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	fuse "github.com/hanwen/go-fuse/v2/fs"
	protocol "github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"promptspool/spool/disk/disktest"
)

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
		if text, ok := strings.CutPrefix(name, disktest.BadBlock); ok {
			offset, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, err
			}
			bad = append(bad, offset)
		}
	}
	return bad, nil
}

// Serve shows the disk of a folder until it is unmounted. It unmounts it when stdin ends: when the
// tests have ended, however they did.
func Serve(folder string) error {
	disk := filepath.Join(folder, disktest.DiskName)
	below := filepath.Join(folder, disktest.BelowName)
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
		_ = syscall.Unmount(filepath.Join(folder, disktest.VolumeName), syscall.MNT_DETACH)
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
		if block < offset+int64(len(dest)) && offset < block+disktest.BlockBytes {
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
		if offset <= block && block+disktest.BlockBytes <= offset+int64(len(data)) {
			err = errors.Join(err, unix.Lremovexattr(path, disktest.BadBlockAt(block)))
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
	_, err := unix.Lgetxattr(filepath.Join(f.node.RootData.Path, f.node.Path(nil)), disktest.BadSync, nil)
	if err == nil {
		return syscall.EIO
	}
	return 0 // there is no power cut here that would need the disk below
}
