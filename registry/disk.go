package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	files "promptspool/spool/disk"
)

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
	// Mode 0600.
	temp, err := os.CreateTemp(d.dir, "*"+fileTemp)
	if err != nil {
		return err
	}

	// The content must be on disk before the name points to it.
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = files.Rename(temp.Name(), d.path(k))
	}
	// No temporary file may pile up while the disk is full.
	if err != nil {
		return errors.Join(err, files.Remove(temp.Name()))
	}

	return d.sync()
}

// remove deletes a file. It does not sync: a removal that a crash undoes does no harm.
func (d disk) remove(k key) error {
	if err := files.Remove(d.path(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}

// sync makes the names in the folder durable.
func (d disk) sync() error { return files.SyncDir(d.dir) }

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
