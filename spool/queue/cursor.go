package queue

import "promptspool/spool/disk"

// A cursor stores on disk how far the spool was acknowledged. The numbers of its
// file are frontier and next.
type cursor struct {
	disk.Slots
	cursorState
}

type cursorState struct {
	frontier uint64 // the lowest sequence that is not acknowledged
	next     uint64 // the sequence of the next append, at the time of the save
}

const cursorMagic = "PSC\x01"

// openCursor opens or creates the file. In a new or unreadable one, frontier and next are
// 1.
func openCursor(path string) (*cursor, error) {
	s, err := disk.OpenSlots(path, cursorMagic)
	if err != nil {
		return nil, err
	}
	return newCursor(s), nil
}

// peekCursor reads the file without changing it.
func peekCursor(path string) (*cursor, error) {
	s, err := disk.PeekSlots(path, cursorMagic)
	return newCursor(s), err
}

func newCursor(s disk.Slots) *cursor {
	// Sequences start at 1.
	c := &cursor{s, cursorState{1, 1}}
	if s.Writes > 0 {
		c.cursorState = cursorState{s.Numbers[0], s.Numbers[1]}
	}
	return c
}

// save makes the state durable. It does nothing if the state is already on disk.
func (c *cursor) save(s cursorState) error {
	if err := c.Slots.Save([2]uint64{s.frontier, s.next}); err != nil {
		return err
	}
	c.cursorState = s
	return nil
}
