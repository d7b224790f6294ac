//go:build linux

package releases

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// compress returns what decompress makes content of.
func compress(t *testing.T, content []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(content, nil)
}

// decompress returns the content of a file ending in .zst.
func decompress(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := r.DecodeAll(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// archived returns the files of a folder, as a tar file, without the locks of processes.
func archived(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == "LOCK" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		head := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}
		if err := errors.Join(err, w.WriteHeader(head)); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpacked returns a new folder with the files of a tar file ending in .zst.
func unpacked(t *testing.T, path string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for r := tar.NewReader(bytes.NewReader(decompress(t, path))); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		name := filepath.Join(dir, head.Name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, content, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
}
