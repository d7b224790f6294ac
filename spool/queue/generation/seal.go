package generation

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/crashpoint"
	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
)

// A sealed generation has a file SEAL: one line with name, size and CRC32C for each of
// Badger's files except the value log, whose frames have their own checksums. Badger ends
// the process on some damaged tables, and opens others without their events. So Badger
// never again sees a generation whose files do not match its SEAL.
const sealName = "SEAL"

var (
	// ErrUnsealed means that a generation was not closed in order, or changed since.
	ErrUnsealed = errors.New("its files do not match its SEAL")
	// ErrUnreadable means that the disk cannot read a part of a sealed generation.
	ErrUnreadable = errors.New("the disk cannot read a part of it")
)

// closeSealed closes a generation for good and seals it.
func closeSealed(db *badger.DB) error {
	dir := db.Opts().Dir
	crashpoint.Reach(crashpoint.GenerationSeal)
	if err := errors.Join(db.Close(), disk.SyncFiles(dir), tighten(dir)); err != nil {
		return err
	}
	crashpoint.Reach(crashpoint.GenerationClosed)

	seal, err := describeFiles(dir)
	if err != nil {
		return err
	}

	// A torn SEAL does no harm: it does not match, and the generation is rebuilt.
	path := filepath.Join(dir, sealName)
	if err := os.WriteFile(path, seal, 0o600); err != nil {
		return err
	}
	return errors.Join(disk.SyncDir(path), disk.SyncDir(dir))
}

// IsSealed reports whether a generation was closed in order and its files are what they
// were then. A file that the disk cannot read counts as different.
func IsSealed(dir string) (bool, error) {
	seal, err := os.ReadFile(filepath.Join(dir, sealName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if disk.IsUnreadable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	// Not an error: the caller rebuilds what does not match, from what can be read.
	files, err := describeFiles(dir)
	if disk.IsUnreadable(err) {
		return false, nil
	}
	return bytes.Equal(seal, files), err
}

// describeFiles returns the content of SEAL. It reads some 60 bytes for each frame of the
// generation.
func describeFiles(dir string) ([]byte, error) {
	paths, err := filesBySuffix(dir, "")
	if err != nil {
		return nil, err
	}

	var text []byte
	for _, path := range paths {
		// LOCK and DISCARD say nothing about events.
		name := filepath.Base(path)
		if name == sealName || name == "LOCK" || name == "DISCARD" || strings.HasSuffix(name, ".vlog") {
			continue
		}

		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, "%s %d %08x\n", name, len(data), disk.Checksum(data))
	}
	return text, nil
}

// Unseal makes a sealed generation count as one that was not closed in order. It does
// nothing to one that is not sealed.
func Unseal(dir string) error {
	seal := filepath.Join(dir, sealName)
	// A generation that was never sealed may have to be rebuilt, too.
	if !disk.Exists(seal) {
		return nil
	}
	return errors.Join(disk.Remove(seal), disk.SyncDir(dir))
}

// Replay lets Badger replay the log of a generation that was not closed, and seals it.
//
// Only a generation whose evidence agrees may be replayed: Badger cuts off what it finds
// wrong. generationBytes is the usual capacity.
func Replay(dir string, generationBytes int64, log badger.Logger) error {
	if err := CheckManifest(dir); err != nil {
		return err
	}

	db, err := openWritable(generationOptions(dir, generationBytes, log))
	if err != nil {
		return err
	}
	return closeSealed(db)
}

// Event is one event on its way to the disk.
type Event struct {
	parts  [][]byte
	bytes  int
	framed bool // parts are frames with empty headers, see spread
}

// NewEvent returns the event that consists of these parts.
//
// It keeps their bytes until the commit is over, and overwrites those of an event larger
// than 1 MiB: such an event is never copied, its frames are made within the caller's bytes.
// A smaller one is copied into one frame, when it is committed.
func NewEvent(parts [][]byte) Event {
	bytes := 0
	for _, part := range parts {
		bytes += len(part)
	}

	if bytes > frame.PartBytes {
		return Event{spread(parts), bytes, true}
	}
	return Event{parts, bytes, false}
}

// Bytes returns the length of the event.
func (e *Event) Bytes() int { return e.bytes }

// Frames returns how many frames the event takes.
func (e *Event) Frames() int {
	if e.framed {
		return len(e.parts)
	}
	return 1
}

// Transaction is one commit, as a whole in one generation. Discard it in any case.
type Transaction struct {
	writer *Writer
	txn    *badger.Txn

	frames int
	bytes  int64
}

// Begin starts a commit of at most CommitFramesMax frames with CommitBytesMax bytes, for
// which the generation must have space. One commit follows the other.
func (w *Writer) Begin() Transaction { return Transaction{writer: w, txn: w.db.NewTransaction(true)} }

// Add adds an event under a key that has Seq, Key and At; Add knows the rest.
func (t *Transaction) Add(k frame.EventKey, e Event) error {
	k.Bytes = uint32(e.bytes)
	t.frames += e.Frames()
	t.bytes += int64(e.bytes)
	return t.writer.framer.set(t.txn, k, e)
}

// Commit makes the events durable: it returns once both logs are synced.
func (t *Transaction) Commit() error {
	if err := t.txn.Commit(); err != nil {
		return err
	}
	crashpoint.Reach(crashpoint.BeforeSync)
	if err := t.writer.sync(); err != nil {
		return err
	}

	// Only what is on the disk uses space: a failed commit ends the spool.
	t.writer.frames += t.frames
	t.writer.bytes += t.bytes
	return nil
}

// Discard ends the transaction, and gives up what was not committed.
func (t *Transaction) Discard() {
	// Badger does not look at the buffer any more.
	t.writer.framer.reset()
	t.txn.Discard()
}

// framer makes the frames of one commit after the other. Its zero value is ready.
//
// An event of usual size is copied into one frame, in a buffer that the next commit
// reuses. Not safe for concurrent use.
type framer struct{ buffer []byte }

// framerBytesMax bounds the buffer that is kept: what 64 writers of 4 KB fill.
const framerBytesMax = 384 << 10

// set adds the frames of one event to a transaction, which reads them until it is
// committed: they do not change until reset.
func (m *framer) set(txn *badger.Txn, k frame.EventKey, e Event) error {
	frames := e.parts
	if !e.framed {
		frames = [][]byte{m.join(e)}
	}

	// The key of every part repeats how many there are: a part that is missing must show,
	// whichever it is.
	k.Parts = uint16(len(frames))
	for i, b := range frames {
		k.Part = uint16(i)
		frame.Frame{EventKey: k}.Seal(b)
		if err := txn.Set(k.Encode(), b); err != nil {
			return err
		}
	}

	return nil
}

// join copies the parts of an event into the buffer, after space for a header.
func (m *framer) join(e Event) []byte {
	size := frame.HeaderBytes + e.bytes
	if size > cap(m.buffer)-len(m.buffer) {
		// Do not grow by append: the transaction still refers to the frames in the old
		// buffer.
		m.buffer = make([]byte, 0, max(size, min(2*cap(m.buffer), framerBytesMax)))
	}

	b := m.buffer[len(m.buffer) : len(m.buffer)+frame.HeaderBytes : len(m.buffer)+size]
	for _, part := range e.parts {
		b = append(b, part...)
	}
	m.buffer = m.buffer[:len(m.buffer)+size]

	return b
}

// reset takes the buffer back, once the transaction is over.
func (m *framer) reset() {
	// The memory of one large commit is not kept for the usual small ones.
	m.buffer = m.buffer[:0]
	if cap(m.buffer) > framerBytesMax {
		m.buffer = nil
	}
}

// spreadMin is how long a part must be to become frames in place; a shorter one is
// copied.
const spreadMin = 64 << 10

// spread turns an event that is too large to be copied into frames with empty headers. It
// takes over the bytes of parts: each header overwrites the first bytes of a piece, which
// move to the end of the small frame before it.
//
//	parts   {"id":...,"body":     {"model":"gpt-4o", ...   }
//	frames  [header {"id":...,"body":{"model":"gpt-4] [header o", ...] [header }]
func spread(parts [][]byte) (frames [][]byte) {
	// Between two large pieces there is always a small frame, into which the first bytes of
	// the next piece can move.
	small := make([]byte, frame.HeaderBytes)
	for _, part := range parts {
		for len(part) > spreadMin {
			n := min(len(part), frame.HeaderBytes+frame.PartBytes)
			frames = append(frames, append(small, part[:frame.HeaderBytes]...), part[:n:n])
			small, part = make([]byte, frame.HeaderBytes), part[n:]
		}
		small = append(small, part...)
	}
	if len(small) > frame.HeaderBytes {
		frames = append(frames, small)
	}

	return frames
}
