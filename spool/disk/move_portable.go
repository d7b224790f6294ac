//go:build !linux || portable

package disk

import (
	"os"
	"time"
)

// patience is how long a file that is in use is waited for. Another program, such as a
// virus scanner, may have it open for a moment.
var patience = 2 * time.Second

// Rename is os.Rename for a file or folder in which nothing is open or mapped.
func Rename(from, to string) error {
	return whenUnused(func() error { return os.Rename(from, to) }, from, to)
}

// Remove is os.Remove for a file that is neither open nor mapped.
func Remove(path string) error { return whenUnused(func() error { return os.Remove(path) }, path) }

// RemoveAll is os.RemoveAll for a file or folder in which nothing is open or mapped.
func RemoveAll(path string) error {
	return whenUnused(func() error { return os.RemoveAll(path) }, path)
}

// whenUnused calls do once nothing is open or mapped at the paths. It gives up after a
// while, with an error that IsInUse recognises.
func whenUnused(do func() error, paths ...string) error {
	for wait := time.Millisecond; ; wait *= 2 {
		// Asked first, because some systems would not refuse.
		err := checkUnused(paths)
		if err == nil {
			err = do()
		}
		if !IsInUse(err) || wait > patience/2 {
			return err
		}

		time.Sleep(wait)
	}
}
