package registry

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/registry/render"
	files "promptspool/spool/disk"
)

// entry is one cached version. key, meta, text and textBytes never change; Cache.mu
// guards the rest.
type entry struct {
	key       key
	meta      entryMeta
	text      []byte // packed
	textBytes int    // of its blueprint and metadata, unpacked

	currentAt time.Time // when the server last confirmed it, as far as the entry itself knows
	invalid   bool      // the server has reported a change since
	saved     bool      // it is on disk
	askedAt   time.Time // when it was last refreshed in the background

	place *list.Element

	// opened is set on first use, and cleared when too many are open. It is read without
	// Cache.mu.
	opened      atomic.Pointer[opened]
	openedPlace *list.Element // nil if not opened
}

// entryMeta decides which version a key means, and whether that is still current.
type entryMeta struct {
	name     string
	version  int
	revision uint64 // the account's when it was read
	latest   int    // the template's latest version at that revision
	labels   []wire.Label
	snippets []wire.UsedSnippet
	urls     string // the digest of the provider base URLs that came with it
}

// entry packs a version that the server sent.
func (p packer) entry(k key, raw *wire.RawTemplate, currentAt time.Time) *entry {
	e := &entry{
		key:       k,
		text:      p.pack(raw),
		textBytes: len(raw.Blueprint) + len(raw.Metadata),
		currentAt: currentAt,
		meta: entryMeta{
			name:     raw.Name,
			version:  raw.Version,
			revision: raw.Revision,
			latest:   raw.Latest,
			labels:   raw.AllLabels,
			snippets: raw.Snippets,
			urls:     raw.ProviderBaseURLs.Digest(),
		},
	}
	if raw.Name == k.ident {
		// One string for both saves memory.
		e.meta.name = k.ident
	}

	return e
}

// bytes estimates what the entry takes on disk, which is more than in memory.
func (e *entry) bytes() int {
	// For times, ids and bookkeeping.
	const rest = 1 << 10
	return e.textBytes + 2*len(e.key.ident) + rest
}

// How much memory serving a template takes at most, as a multiple of its bytes.
const (
	rawCopies    = 5  // unpacked, decoded and answered
	renderCopies = 6  // filled in as well
	parsedCopies = 40 // tokens and nodes of texts that consist of tags
)

// bytesToRender returns how much memory it takes to serve the entry rendered.
func (e *entry) bytesToRender() int {
	if e.opened.Load() != nil {
		return renderCopies * e.textBytes
	}

	return (renderCopies + parsedCopies) * e.textBytes
}

// entries holds what is cached, with its order of use. Cache.mu guards it.
type entries struct {
	byKey map[key]*entry

	// byTemplate holds the same entries by template, whatever the version. Most have one,
	// so slices take less memory than maps.
	byTemplate map[templateKey][]*entry

	used  *list.List // of *entry, most recently used first
	bytes int

	opened      *list.List // of *entry that are open, most recently used first
	openedBytes int

	countMax, bytesMax, openedBytesMax int
}

func newEntries() entries {
	return entries{
		byKey:          make(map[key]*entry),
		byTemplate:     make(map[templateKey][]*entry),
		used:           list.New(),
		opened:         list.New(),
		countMax:       entriesMax,
		bytesMax:       entryBytesMax,
		openedBytesMax: openedBytesMax,
	}
}

// templateKey is a template of an account, as callers name it.
type templateKey struct{ account, name string }

// sibling finds the version that a selector means among the copies of the template's
// other selectors; nil if it is not there. The newest copy that knowsLabels accepts
// decides where the labels point.
func (s *entries) sibling(k key, knowsLabels func(*entry) bool) *entry {
	var newest *entry
	for _, e := range s.byTemplate[k.template()] {
		if !knowsLabels(e) || e.meta.latest == 0 {
			continue
		}
		if newest == nil || e.meta.revision > newest.meta.revision {
			newest = e
		}
	}
	if newest == nil {
		return nil
	}

	// Only the parts of a head that Resolve looks at.
	head := wire.Template{Labels: newest.meta.labels, Versions: make([]wire.Stamp, newest.meta.latest)}
	version, ok := head.Resolve(k.selector)
	if !ok {
		return nil
	}

	// Among those, a copy with that version. Its own text never changes, that of snippets
	// may.
	for _, e := range s.byTemplate[k.template()] {
		if e.meta.version == version && (!e.invalid || len(e.meta.snippets) == 0) {
			return e
		}
	}

	return nil
}

// put adds an entry. It counts as just used unless it replaces one with the same key:
// being refreshed in the background is not being used.
func (s *entries) put(e *entry) {
	// Inserted before the old one is dropped, to take over its place in the order.
	if old := s.byKey[e.key]; old != nil {
		e.place = s.used.InsertBefore(e, old.place)
		s.drop(e.key)
	} else {
		e.place = s.used.PushFront(e)
	}

	s.byKey[e.key] = e
	template := e.key.template()
	s.byTemplate[template] = append(s.byTemplate[template], e)
	s.bytes += e.bytes()
}

func (s *entries) touch(e *entry) {
	s.used.MoveToFront(e.place)
	if e.openedPlace != nil {
		s.opened.MoveToFront(e.openedPlace)
	}
}

func (s *entries) drop(k key) {
	e := s.byKey[k]
	if e == nil {
		return
	}

	s.used.Remove(e.place)
	s.bytes -= e.bytes()
	delete(s.byKey, k)

	template := k.template()
	if others := s.byTemplate[template]; len(others) > 1 {
		s.byTemplate[template] = slices.DeleteFunc(others, func(other *entry) bool { return other == e })
	} else {
		delete(s.byTemplate, template)
	}

	s.close(e)
}

// keepOpened keeps an entry open, and closes the least recently used ones beyond the
// bound.
func (s *entries) keepOpened(e *entry, o *opened) {
	// The entry may have been dropped, or opened by another caller, while it was parsed.
	if s.byKey[e.key] != e || e.openedPlace != nil || o.prepared.Bytes() > s.openedBytesMax {
		return
	}

	e.opened.Store(o)
	e.openedPlace = s.opened.PushFront(e)
	s.openedBytes += o.prepared.Bytes()
	// The entry itself is in front and fits, so it stays.
	for s.openedBytes > s.openedBytesMax {
		s.close(s.opened.Back().Value.(*entry))
	}
}

// close lets go of an entry's opened form. Callers that already have it may continue to
// use it.
func (s *entries) close(e *entry) {
	if e.openedPlace == nil {
		return
	}

	// Swapped atomically: fetches load it without mu.
	s.openedBytes -= e.opened.Swap(nil).prepared.Bytes()
	s.opened.Remove(e.openedPlace)
	e.openedPlace = nil
}

// shrink drops the least recently used entries beyond the bounds, and returns their keys.
func (s *entries) shrink() (dropped []key) {
	for len(s.byKey) > s.countMax || s.bytes > s.bytesMax {
		k := s.used.Back().Value.(*entry).key
		s.drop(k)
		dropped = append(dropped, k)
	}
	return dropped
}

// lowestRevision returns the revision from which a feed must start so that it misses no
// change of the account's entries.
func (s *entries) lowestRevision(account string) uint64 {
	var lowest uint64
	isFirst := true
	// Zero without entries: then everything is reported, and nothing is affected by it.
	for k, e := range s.byKey {
		if k.account == account && (isFirst || e.meta.revision < lowest) {
			lowest, isFirst = e.meta.revision, false
		}
	}
	return lowest
}

// packer compresses templates: a sidecar may hold thousands, while an app uses a few. A
// template of 2 KB shrinks to half, and takes about 50 us to unpack. Safe for concurrent
// use.
type packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newPacker() (packer, error) {
	// Both live as long as the sidecar, so they get as
	// little memory as they can do with (G6).
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(64<<10),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return packer{}, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))

	return packer{encoder, decoder}, err
}

func (p packer) pack(raw *wire.RawTemplate) []byte {
	// Without spare capacity.
	return slices.Clone(p.encoder.EncodeAll(encodeJSON(raw), nil))
}

func (p packer) unpack(text []byte) (*wire.RawTemplate, error) {
	// The checksum of the frame makes damage an error instead of a wrong text.
	text, err := p.decoder.DecodeAll(text, nil)
	var raw wire.RawTemplate
	if err == nil {
		err = json.Unmarshal(text, &raw)
	}
	if err != nil {
		return nil, fmt.Errorf("a template in the cache was damaged in memory: %w", err)
	}

	return &raw, nil
}

// opened is a template in use: unpacked, with its texts parsed. It never changes.
type opened struct {
	raw      *wire.RawTemplate
	prepared *render.Prepared
}

func open(raw *wire.RawTemplate) (*opened, error) {
	p, err := render.Prepare(raw.Blueprint, raw.Metadata)
	if err != nil {
		return nil, err
	}

	return &opened{raw, p}, nil
}

// disk is the folder of a Cache, with one file per entry. A file is written under a
// temporary name, fsynced and renamed, so a crash leaves the old file or the new one. It
// holds
//
//	"promptspool template 1 "  format and version
//	8 hex digits, "\n"         CRC-32C of the rest
//	a cachedFile in JSON
//
// Its name is the SHA-256 of its key, because templates may have names that files cannot
// have.
type disk struct {
	dir    string
	packer packer
	log    *slog.Logger
}

type cachedFile struct {
	Account   string           `json:"account"`
	Ident     string           `json:"ident"`
	Version   int              `json:"version,omitempty"`
	Label     string           `json:"label,omitempty"`
	CurrentAt time.Time        `json:"current_at"`
	Template  wire.RawTemplate `json:"template"`
}

const (
	fileMagic = "promptspool template 1 "
	fileEnd   = ".template"
	fileTemp  = ".tmp"
	fileBad   = ".bad"
)

// digest names the key's file.
func (k key) digest() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q",
		k.account, k.ident, k.selector.Version, k.selector.Label))
}

func (d disk) path(k key) string {
	digest := k.digest()
	return filepath.Join(d.dir, hex.EncodeToString(digest[:])+fileEnd)
}

// encodeFile returns the content of an entry's file.
func encodeFile(k key, raw wire.RawTemplate, currentAt time.Time) []byte {
	body := encodeJSON(cachedFile{
		Account:   k.account,
		Ident:     k.ident,
		Version:   k.selector.Version,
		Label:     k.selector.Label,
		CurrentAt: currentAt,
		Template:  raw,
	})

	return append(fmt.Appendf(nil, "%s%08x\n", fileMagic, files.Checksum(body)), body...)
}

// encodeJSON encodes a value that holds a template. The blueprint keeps its bytes. It
// panics on an error: the template was read as JSON, so it can be written as JSON.
func encodeJSON(v any) []byte {
	body, err := jsonscan.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("registry: a template that was read as JSON cannot be encoded: %v", err))
	}

	return body
}

// decodeFile is the reverse of encodeFile.
func (d disk) decodeFile(content []byte) (*entry, error) {
	head, body, _ := bytes.Cut(content, []byte("\n"))
	// A wrong version of the format fails here as well.
	if want := fmt.Sprintf("%s%08x", fileMagic, files.Checksum(body)); string(head) != want {
		return nil, errors.New("its checksum does not match its content")
	}
	var f cachedFile
	if err := json.Unmarshal(body, &f); err != nil {
		return nil, err
	}

	// Packed again: memory holds templates compressed, files hold them readable.
	k := newKey(f.Account, f.Ident, wire.Selector{Version: f.Version, Label: f.Label})
	e := d.packer.entry(k, &f.Template, f.CurrentAt)
	e.saved = true

	return e, nil
}

func (d disk) write(k key, content []byte) error {
	return files.WriteFile(d.path(k), d.path(k)+fileTemp, content)
}

// remove deletes a file, if it is there. It does not sync: a removal that a crash undoes does no harm.
func (d disk) remove(k key) error { return files.RemoveAll(d.path(k)) }

// load reads every file, and deletes temporary files left by a killed process. The entry
// that was confirmed last comes last, so that it counts as the most recently used.
func (d disk) load() ([]*entry, error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, err
	}
	names, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}

	var loaded []*entry
	for _, file := range names {
		path := filepath.Join(d.dir, file.Name())
		switch filepath.Ext(file.Name()) {
		// A process that was killed has left it, before it had its name.
		case fileTemp:
			err = errors.Join(err, files.Remove(path))
		case fileEnd:
			if e := d.read(path); e != nil {
				loaded = append(loaded, e)
			}
		}
	}
	slices.SortFunc(loaded, func(a, b *entry) int { return a.currentAt.Compare(b.currentAt) })

	return loaded, err
}

// read reads a file. If that fails, it renames the file to end in .bad and returns nil.
func (d disk) read(path string) *entry {
	var e *entry
	content, err := os.ReadFile(path)
	if err == nil {
		e, err = d.decodeFile(content)
	}
	// A file that was copied or renamed would serve one template under the name of
	// another.
	if err == nil && d.path(e.key) != path {
		err = errors.New("its name does not match its content")
	}
	if err == nil {
		return e
	}

	// The bytes stay, to find out what broke; the template is fetched again.
	aside := strings.TrimSuffix(path, fileEnd) + fileBad
	err = errors.Join(err, files.Rename(path, aside))
	d.log.Error("cannot read a cached template; it will be fetched again on its next use",
		"renamed_to", aside, "error", err)

	return nil
}
