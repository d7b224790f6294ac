package generation

import (
	"maps"
	"slices"

	"promptspool/spool/queue/frame"
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
	key    frame.EventKey // Bytes is of this part
}

// read reads the frame and verifies it: the file may have been damaged since it was
// examined. The payload aliases b.
func (ref frameRef) read() (f frame.Frame, b []byte, err error) {
	b = make([]byte, frame.HeaderBytes+int(ref.key.Bytes))
	if err := readAt(ref.file, b, ref.offset); err != nil {
		return f, nil, err
	}
	f, err = frame.Decode(b)
	return f, b, err
}

// Evidence is what the raw files of a generation prove. Not safe for concurrent use.
type Evidence struct {
	// Broken means that Badger would cut off whole frames if it opened the generation for
	// writing, or would not open it at all.
	Broken bool
	// Unreadable are the parts of files that the disk cannot read.
	Unreadable []Unreadable

	dir string // of the generation

	// events maps a sequence to its frames by part, all of them whole. Incomplete events
	// are left out.
	events map[uint64][]frameRef
	// committed is the last sequence that a write-ahead log names as committed; 0 if none
	// is left.
	committed uint64
	// newest is the first sequence of the commit that committed belongs to.
	newest uint64
}

// Unreadable is a part of a file that the disk cannot read.
type Unreadable struct {
	Path  string
	Bytes int64
}

// leaveOut notes the parts of a file that cannot be read. Badger must not see the file
// then: it reads through mappings, and the fault would end the process.
func (ev *Evidence) leaveOut(path string, bad []rawlog.Span) {
	for _, span := range bad {
		ev.Unreadable = append(ev.Unreadable, Unreadable{path, span.End - span.From})
		ev.Broken = true
	}
}

// Examine reads the raw files of a generation, without the parts that the disk cannot
// read. It fails only if a whole file cannot be read.
func Examine(dir string) (Evidence, error) {
	ev := Evidence{dir: dir, events: make(map[uint64][]frameRef)}

	if err := ev.eachFile(".vlog", ev.examineValueLog); err != nil {
		return ev, err
	}
	ev.dropIncomplete()

	// A sealed generation has no write-ahead log any more, and committed stays 0.
	err := ev.eachFile(".mem", func(_ string, data []byte) {
		if newest, last := lastCommitted(data); last > ev.committed {
			ev.newest, ev.committed = newest, last
		}
		ev.Broken = ev.Broken || !rawlog.IsPlain(data)
	})
	return ev, err
}

// eachFile calls examine with the files whose names end in suffix, without what cannot be read.
func (ev *Evidence) eachFile(suffix string, examine func(path string, data []byte)) error {
	paths, err := filesBySuffix(ev.dir, suffix)
	for _, path := range paths {
		if err != nil {
			break
		}
		err = rawlog.Map(path, func(data []byte, bad []rawlog.Span) error {
			ev.leaveOut(path, bad)
			examine(path, data)
			return nil
		})
	}
	return err
}

// examineValueLog finds every whole frame in a value log, including those after damage,
// which Badger would cut off.
func (ev *Evidence) examineValueLog(path string, data []byte) {
	ev.Broken = ev.Broken || !rawlog.IsPlain(data)
	chainEnd := 0 // where Badger would stop
	for e := range rawlog.Entries(data) {
		chainEnd = e.End
	}

	for at, f := range frame.All(data) {
		// The frames of one commit are in any order.
		refs := ev.events[f.Seq]
		if int(f.Part) >= len(refs) {
			refs = append(refs, make([]frameRef, int(f.Part)+1-len(refs))...)
		}
		refs[f.Part] = frameRef{path, int64(at), f.EventKey}
		ev.events[f.Seq] = refs

		// Whole, but after damage: Badger would cut it off.
		ev.Broken = ev.Broken || at > chainEnd
	}
}

// dropIncomplete removes events that lack a frame.
func (ev *Evidence) dropIncomplete() {
	for seq, refs := range ev.events {
		if slices.ContainsFunc(refs, func(r frameRef) bool { return int(r.key.Parts) != len(refs) }) {
			delete(ev.events, seq)
		}
	}
}

// Agrees reports whether Badger may open the generation, which begins with first.
//
// It may if everything committed is whole, everything whole was committed, and nothing
// would be cut off.
func (ev *Evidence) Agrees(first uint64) bool {
	if ev.Broken {
		return false
	}

	// Counting is enough: sequences inside of the bounds are all different.
	n := uint64(0)
	for seq := range ev.events {
		if seq < first || seq > ev.committed {
			return false
		}
		n++
	}
	return ev.committed == 0 && n == 0 || n == ev.committed-first+1
}

// End returns the sequence after the last one that was certainly committed or can be
// recovered.
//
// Beyond the last one that a write-ahead log names, whole events count as long as they
// follow each other: they were committed and the log is damaged, or the crash came just
// before. An event after a hole belongs to a commit that never ended.
func (ev *Evidence) End(first uint64) uint64 {
	end := max(first, ev.committed+1)
	for ev.events[end] != nil {
		end++
	}
	return end
}

// lastCommitted returns the first and the last sequence of the last finished transaction
// of a write-ahead log; 0 and 0 if there is none.
func lastCommitted(data []byte) (first, last uint64) {
	// Of the transaction that is being read; here End is its last sequence.
	var open frame.Range
	for e := range rawlog.Entries(data) {
		if k, ok := frame.DecodeEventKey(e.Key); ok {
			if open.From == 0 {
				open.From = k.Seq
			}
			open.From, open.End = min(open.From, k.Seq), max(open.End, k.Seq)
		}

		// A transaction without its end was never finished, and does not count.
		if !e.EndsTransaction() {
			continue
		}

		if open.End > last {
			first, last = open.From, open.End
		}
		open = frame.Range{}
	}
	return first, last
}

// Holes returns the sequences from <= s < end for which no whole event was found.
func (ev *Evidence) Holes(from, end uint64) []frame.Range {
	var holes []frame.Range
	// Each sequence is looked up: events is a map, and sorting it would cost more.
	for seq := from; seq < end; seq++ {
		if ev.events[seq] != nil {
			continue
		}

		if n := len(holes); n > 0 && holes[n-1].End == seq {
			holes[n-1].End++
		} else {
			holes = append(holes, frame.Range{From: seq, End: seq + 1})
		}
	}
	return holes
}

// Len returns the number of whole events.
func (ev *Evidence) Len() int { return len(ev.events) }

// Sequences returns those of all whole events, in order.
func (ev *Evidence) Sequences() []uint64 { return slices.Sorted(maps.Keys(ev.events)) }

// EventBytes returns the length of a whole event, without its frames' headers.
func (ev *Evidence) EventBytes(seq uint64) (n int64) {
	for _, ref := range ev.events[seq] {
		n += int64(ref.key.Bytes)
	}
	return n
}

// EventFile returns the path of the file that a whole event begins in.
func (ev *Evidence) EventFile(seq uint64) string { return ev.events[seq][0].file }

// NextWhole returns the first sequence, from <= s < end, of a whole event, or end if
// there is none.
func (ev *Evidence) NextWhole(from, end uint64) uint64 {
	for from < end && ev.events[from] == nil {
		from++
	}
	return from
}

// Read assembles a whole event from its frames, and verifies each again. The data belongs
// to the caller.
func (ev *Evidence) Read(seq uint64) (frame.Entry, error) {
	refs := ev.events[seq]
	k := refs[0].key
	e := frame.Entry{
		Seq:  k.Seq,
		Key:  k.Key,
		At:   k.At,
		Data: make([]byte, 0, ev.EventBytes(seq)),
	}

	for _, ref := range refs {
		f, _, err := ref.read()
		if err != nil {
			return e, err
		}
		e.Data = append(e.Data, f.Payload...)
	}
	return e, nil
}
