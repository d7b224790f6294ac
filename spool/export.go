package spool

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"promptspool/spool/frame"
)

// Bounds of one read by Spool.Waiting; a larger event comes alone.
const (
	exportEventsMax = 1000
	exportBytesMax  = 4 << 20
)

// Waiting yields, in order, the events that wait now and are whole.
//
// Some 4 MiB of them are in memory at a time. Events that are acknowledged meanwhile may
// be left out. What cannot be read is counted and logged, as by Read. The sequence ends
// after an error. Waiting takes turns with calls that read and acknowledge.
func (s *Spool) Waiting(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		// What is appended from here on is left out, or a busy spool would never come to
		// an end.
		newest, _ := s.Newest()
		for from := s.Frontier(); from <= newest; from = max(from, s.Frontier()) {
			r := reading{
				spool:     s,
				from:      from,
				end:       newest + 1,
				eventsMax: exportEventsMax,
				bytesMax:  exportBytesMax,
			}
			if err := r.run(ctx); err != nil {
				yield(Entry{}, err)
				return
			}

			if len(r.entries) == 0 {
				return
			}
			for _, e := range r.entries {
				if !yield(e, nil) {
					return
				}
			}
			from = r.entries[len(r.entries)-1].Seq + 1
		}
	}
}

// errEnough ends an inspection when the caller's loop ends.
var errEnough = errors.New("no more is wanted")

// Waiting yields, in order, the events that wait and are whole, with one in memory at a
// time.
//
// What is damaged is left out, see Check. The sequence ends after an error.
func (f *Folder) Waiting() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		in := inspection{folder: f, visit: func(ev evidence, from, end uint64) error {
			return yieldEvents(ev, from, end, yield)
		}}
		if err := in.run(context.Background()); err != nil && !errors.Is(err, errEnough) {
			yield(Entry{}, err)
		}
	}
}

// Quarantined yields every whole event in the quarantine of the spool in dir, folder by
// folder.
//
// Most of them are in the spool, or at the server, as well: only what was damaged is
// missing there, and here. One event is in memory at a time. A process may have the spool
// open meanwhile. The sequence ends after an error.
func Quarantined(dir string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		names, err := folderNames(filepath.Join(dir, quarantineName))
		for _, name := range names {
			var ev evidence
			if ev, err = examine(filepath.Join(dir, quarantineName, name)); err == nil {
				err = yieldEvents(ev, 0, ^uint64(0), yield)
			}
			if err != nil {
				break
			}
		}

		if err != nil && !errors.Is(err, errEnough) {
			yield(Entry{}, err)
		}
	}
}

// yieldEvents reads the whole events from <= sequence < end from the raw files. It
// returns errEnough when yield returns false.
func yieldEvents(ev evidence, from, end uint64, yield func(Entry, error) bool) error {
	for _, seq := range slices.Sorted(maps.Keys(ev.events)) {
		if seq < from || seq >= end {
			continue
		}

		e, err := readRefs(ev.events[seq])
		if err != nil {
			return fmt.Errorf("spool: event %d in %s: %w", seq, ev.events[seq][0].file, err)
		}
		if !yield(e, nil) {
			return errEnough
		}
	}
	return nil
}

// readRefs assembles an event from its frames in the raw files, and verifies each again.
func readRefs(refs []frameRef) (Entry, error) {
	k := refs[0].key
	e := Entry{
		Seq:  k.Seq,
		Key:  k.Key,
		At:   k.At,
		Data: make([]byte, 0, payloadBytes(refs)),
	}

	for _, ref := range refs {
		b := make([]byte, frame.HeaderBytes+int(ref.key.Bytes))
		if err := readAt(ref.file, b, ref.offset); err != nil {
			return e, err
		}
		f, err := frame.Decode(b)
		if err != nil {
			return e, err
		}
		e.Data = append(e.Data, f.Payload...)
	}
	return e, nil
}

// folderNames lists the folders in dir; none if dir does not exist.
func folderNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}

	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
