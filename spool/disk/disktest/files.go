package disktest

import (
	"flag"
	"io"
	"os"

	"promptspool/spool/disk"
)

// ReadFile reads a file up to its last data. Badger makes each value log as long as it may ever be: some hundred
// megabytes of nothing, which a test that looks for a text need not read.
func ReadFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	end, err := disk.DataEnd(file)
	if err != nil {
		return nil, err
	}
	content := make([]byte, end)
	_, err = io.ReadFull(io.NewSectionReader(file, 0, end), content)
	return content, err
}

// InMemory makes the temporary folders of this process in memory, if there is space.
//
// Most of what the tests of a queue wait for is an fsync, and what they prove does not
// depend on it. TestMain calls it. Benchmarks keep their disk, and so does a run with
// TMPDIR set.
func InMemory() {
	const memory, space = "/dev/shm", 1 << 30
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() != "" || os.Getenv("TMPDIR") != "" {
		return
	}
	if r, err := disk.SpaceAt(memory); err == nil && r.Free >= space {
		_ = os.Setenv("TMPDIR", memory)
	}
}
