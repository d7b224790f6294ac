package spool

import (
	"os"

	"promptspool/spool/frame"
	"promptspool/spool/rawlog"
)

// forget removes the events from this sequence on from the write-ahead log, as far as the
// file can still be written.
//
// They were not answered, and their frames may not be on the disk: the next start would
// report them as missing. Errors are ignored, because the spool has failed already.
func (g *generation) forget(seq uint64) {
	paths, err := filesBySuffix(g.db.Opts().Dir, ".mem")
	if err != nil || len(paths) != 1 {
		return
	}

	var at int64 = rawlog.HeaderBytes
	err = rawlog.Map(paths[0], func(data []byte, _ []rawlog.Span) error {
		for e := range rawlog.Entries(data) {
			if k, ok := frame.DecodeEventKey(e.Key); ok && k.Seq >= seq {
				break
			}
			at = int64(e.End)
		}
		return nil
	})
	if err != nil {
		return
	}

	// Zeros over the header of an entry end the log there: it does not verify.
	if file, err := os.OpenFile(paths[0], os.O_WRONLY, 0); err == nil {
		_, _ = file.WriteAt(make([]byte, rawlog.HeaderBytes), at)
		_ = file.Close()
	}
}
