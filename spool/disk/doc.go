// Package disk holds what the spool asks of a file system beyond package os.
//
// That is: names that survive a power failure, files with all their blocks, two numbers
// that are replaced together (Slots), and what an error says about the disk. Except for
// Slots, everything is safe for concurrent use.
package disk

import "os"

// SyncDir makes the names in a folder, or the content of a file, durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}

	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}

// Exists reports whether there is something at path. A link counts, wherever it leads.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
