package spool

import (
	"bytes"
	"errors"
	"slices"

	"promptspool/spool/frame"
	"promptspool/spool/rawlog"
)

// This file reads Badger's files as they are on the disk, and changes nothing. Badger
// repairs what it opens by cutting off everything after the first byte that is wrong, in
// the write-ahead log and in the value log alike. So a generation that was not closed is
// examined here before Badger sees it.

// frameRef is the place of a whole frame.
type frameRef struct {
	file   string
	offset int64
	key    frame.EventKey // bytes is of this part
}

// evidence is what the raw files of a generation prove.
type evidence struct {
	// events maps a sequence to its frames by part, all of them whole. Incomplete events
	// are left out.
	events map[uint64][]frameRef
	// committed is the last sequence that a write-ahead log names as committed; 0 if none
	// is left.
	committed uint64
	// newest is the first sequence of the commit that committed belongs to.
	newest uint64
	// broken means that Badger would cut off whole frames if it opened the generation for
	// writing, or would not open it at all.
	broken bool
	// unreadable are the parts of files that the disk cannot read.
	unreadable []unreadable
}

// unreadable is a part of a file that the disk cannot read.
type unreadable struct {
	path  string
	bytes int64
}

// leaveOut records the parts of a file that cannot be read. Badger must not see the file
// then: it reads through mappings, and the fault would end the process.
func (ev *evidence) leaveOut(path string, bad []rawlog.Span) {
	for _, span := range bad {
		ev.unreadable = append(ev.unreadable, unreadable{path, span.End - span.From})
		ev.broken = true
	}
}

// examine reads the raw files of a generation, without the parts that the disk cannot
// read. It fails only if a whole file cannot be read.
func examine(dir string) (evidence, error) {
	ev := evidence{events: make(map[uint64][]frameRef)}

	valueLogs, err := filesBySuffix(dir, ".vlog")
	if err != nil {
		return ev, err
	}
	for _, path := range valueLogs {
		err := rawlog.Map(path, func(data []byte, bad []rawlog.Span) error {
			ev.leaveOut(path, bad)
			return ev.examineValueLog(path, data)
		})
		if err != nil {
			return ev, err
		}
	}
	ev.dropIncomplete()

	// A sealed generation has no write-ahead log any more, and committed stays 0.
	logs, err := filesBySuffix(dir, ".mem")
	if err != nil {
		return ev, err
	}
	for _, path := range logs {
		err := rawlog.Map(path, func(data []byte, bad []rawlog.Span) error {
			ev.leaveOut(path, bad)
			if newest, last := lastCommitted(data); last > ev.committed {
				ev.newest, ev.committed = newest, last
			}
			ev.broken = ev.broken || !rawlog.IsPlain(data)
			return nil
		})
		if err != nil {
			return ev, err
		}
	}
	return ev, nil
}

// examineValueLog finds every whole frame in a value log, including those behind damage,
// which Badger would cut off.
func (ev *evidence) examineValueLog(path string, data []byte) error {
	ev.broken = ev.broken || !rawlog.IsPlain(data)
	chainEnd := 0 // where Badger would stop
	for e := range rawlog.Entries(data) {
		chainEnd = e.End
	}

	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(frame.Magic))
		if i < 0 {
			return nil
		}
		at += i

		f, err := frame.Decode(data[at:])
		if errors.Is(err, frame.ErrNewer) {
			return err
		}
		if err != nil {
			at++
			continue
		}

		// The frames of one commit are in any order.
		refs := ev.events[f.Seq]
		if int(f.Part) >= len(refs) {
			refs = append(refs, make([]frameRef, int(f.Part)+1-len(refs))...)
		}
		key := frame.EventKey{
			Seq:   f.Seq,
			Part:  f.Part,
			Parts: f.Parts,
			Key:   f.Key,
			Bytes: uint32(len(f.Payload)),
			At:    f.At,
		}
		refs[f.Part] = frameRef{path, int64(at), key}
		ev.events[f.Seq] = refs

		// Whole, but behind damage: Badger would cut it off.
		ev.broken = ev.broken || at > chainEnd
		at += frame.HeaderBytes + len(f.Payload)
	}
}

// dropIncomplete removes events that lack a frame.
func (ev *evidence) dropIncomplete() {
	for seq, refs := range ev.events {
		if slices.ContainsFunc(refs, func(r frameRef) bool { return int(r.key.Parts) != len(refs) }) {
			delete(ev.events, seq)
		}
	}
}

// agrees reports whether Badger may open the generation: everything committed is whole,
// everything whole was committed, and nothing would be cut off.
func (ev *evidence) agrees(first uint64) bool {
	if ev.broken {
		return false
	}

	n := uint64(0)
	for seq := range ev.events {
		if seq < first || seq > ev.committed {
			return false
		}
		n++
	}
	return ev.committed == 0 && n == 0 || n == ev.committed-first+1
}

// end returns the sequence after the last one that was certainly committed or can be
// recovered.
//
// Beyond the last one that a write-ahead log names, whole events count as long as they
// follow each other: they were committed and the log is damaged, or the crash came just
// before. An event after a hole belongs to a commit that never ended.
func (ev *evidence) end(first uint64) uint64 {
	end := max(first, ev.committed+1)
	for ev.events[end] != nil {
		end++
	}
	return end
}

// lastCommitted returns the first and the last sequence of the last finished transaction
// of a write-ahead log; 0 and 0 if there is none.
func lastCommitted(data []byte) (first, last uint64) {
	var open seqRange // of the transaction that is being read; here end is its last sequence
	for e := range rawlog.Entries(data) {
		if k, ok := frame.DecodeEventKey(e.Key); ok {
			if open.from == 0 {
				open.from = k.Seq
			}
			open.from, open.end = min(open.from, k.Seq), max(open.end, k.Seq)
		}

		// A transaction without its end was never finished, and does not count.
		if !e.EndsTransaction() {
			continue
		}

		if open.end > last {
			first, last = open.from, open.end
		}
		open = seqRange{}
	}
	return first, last
}
