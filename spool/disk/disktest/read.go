package disktest

import (
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
