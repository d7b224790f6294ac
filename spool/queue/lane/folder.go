package lane

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/dustin/go-humanize/english"

	"promptspool/spool/queue/frame"
)

// Folder reads the lanes of a spool that no process has open. It changes nothing.
//
// The caller must keep out a process that would. A Folder holds no file open.
type Folder struct {
	dir   string // of the segments
	count count  // without its file
}

// PeekFolder looks at the lanes of the spool in dir. There need not be any.
func PeekFolder(dir string) (Folder, error) {
	count, err := peekCount(dir)
	return Folder{filepath.Join(dir, folderName), count}, err
}

// AtLeast returns how many events the lane held when the spool was stopped, or fewer.
//
// It returns 0 if the file with the number cannot be read.
func (f Folder) AtLeast(lane Lane) int { return f.count.atLeast(lane) }

// All yields the events of a lane, as Lanes.All does.
//
// From a damaged file, which Open would set aside, it yields the events that are whole,
// and then an error with Seq 0.
func (f Folder) All(lane Lane) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		names, err := segmentNames(f.dir)
		if err != nil {
			yield(Entry{}, err)
			return
		}

		for _, n := range names {
			if n.kind.lane != lane || n.unfinished {
				continue
			}

			// A damaged file is salvaged, any other error is passed on, and the loop
			// continues after both.
			path := filepath.Join(f.dir, n.name)
			_, _, err := describeSegment(path, n.kind)
			switch {
			case err == nil && !segment{path: path, kind: n.kind}.each(yield):
				return
			case errors.Is(err, frame.ErrDamaged) && !eachSalvaged(path, n.kind, yield):
				return
			case err != nil && !errors.Is(err, frame.ErrDamaged) && !yield(Entry{}, err):
				return
			}
		}
	}
}

// eachSalvaged yields what is whole in a damaged file of a lane, then an error. It
// returns false when yield did.
func eachSalvaged(path string, k kind, yield func(Entry, error) bool) bool {
	whole, promised, err := salvage(path)
	if err != nil {
		return yield(Entry{}, err)
	}

	for _, w := range whole {
		if e, err := unwrap(w.key, w.wrapped, k.limited); !yield(e, err) {
			return false
		}
	}

	all := english.Plural(max(promised, len(whole)), "event", "")
	return yield(Entry{}, fmt.Errorf("spool: %s is damaged: %d of %s in it whole", path, len(whole), all))
}
