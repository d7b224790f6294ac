package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/disk"
)

// keyFile is the content of a key's file, which is named by the key's number: one
// line of JSON, and one with the CRC32C of the first in hexadecimal. With a flipped
// bit the key's events would go out under another key, or its app would read
// another account's templates.
type keyFile struct {
	Number  uint32          `json:"number"`
	Secret  string          `json:"key"`
	State   keyState        `json:"state"`
	Verdict wire.KeyVerdict `json:"verdict"`
}

const (
	keySuffix = ".json"
	newSuffix = ".tmp" // a file that is being written
	badSuffix = ".bad" // a damaged file that was set aside
)

func encodeKey(key *key) ([]byte, error) {
	line, err := json.Marshal(keyFile{key.number, string(key.secret), key.state, key.verdict})
	if err != nil {
		return nil, err
	}

	return fmt.Appendf(line, "\n%08x\n", disk.Checksum(line)), nil
}

// decodeKey reads what encodeKey wrote under this number. Its errors do not show the
// content, which is secret.
func decodeKey(text []byte, number uint32) (*key, error) {
	// The checksum first: what does not match it says nothing of its key.
	line, sum, _ := bytes.Cut(text, []byte("\n"))
	if string(sum) != fmt.Sprintf("%08x\n", disk.Checksum(line)) {
		return nil, errors.New("its checksum does not match")
	}

	var f keyFile
	known := []keyState{keyUnknown, keyGood, keyRefused}
	if json.Unmarshal(line, &f) != nil || f.Secret == "" || !slices.Contains(known, f.State) {
		return nil, errors.New("it does not hold a key that this version can read")
	}
	// A file that was copied or renamed would put its events under another key.
	if f.Number != number {
		return nil, errors.New("its name is that of another key")
	}

	secret := wire.Secret(f.Secret)

	return &key{
		number:  number,
		secret:  secret,
		hash:    hashOf(secret),
		state:   f.State,
		verdict: f.Verdict,
		saved:   true,
	}, nil
}

// readKeys reads the files of a ring's folder, which it creates when absent. It sets
// damaged files aside. A later start removes those whose key no event needs any more, and
// files that were not written to their end.
func readKeys(dir string, needed []uint32, logger *slog.Logger) ([]*key, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of the keys: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the folder of the keys: %w", err)
	}

	var keys []*key
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		suffix := filepath.Ext(e.Name())
		number, isKey := numberOf(strings.TrimSuffix(e.Name(), suffix))
		switch {
		case !isKey:
		case suffix == keySuffix:
			key, err := readKey(path, number, logger)
			if err != nil {
				return nil, fmt.Errorf("the file of a key: %w", err)
			}
			if key != nil {
				keys = append(keys, key)
			}
		case suffix == newSuffix, suffix == badSuffix && !slices.Contains(needed, number):
			if err := disk.Remove(path); err != nil {
				return nil, fmt.Errorf("the rest of a key's file: %w", err)
			}
		}
	}

	return keys, nil
}

// readKey reads one file. It sets a damaged one aside, and returns nil for it.
func readKey(path string, number uint32, logger *slog.Logger) (*key, error) {
	var key *key
	text, damage := os.ReadFile(path)
	if damage == nil {
		key, damage = decodeKey(text, number)
	} else if !disk.IsUnreadable(damage) {
		return nil, damage
	}

	// It is kept for a person: the key in it may be readable to them, and events
	// may need it.
	if damage != nil {
		bad := strings.TrimSuffix(path, keySuffix) + badSuffix
		logger.Error("The file of a key is damaged and was set aside. "+
			"Events of this key that are still in the spool will be held.",
			"key", number, "file", bad, "error", damage)
		return nil, disk.Rename(path, bad)
	}

	return key, nil
}

// numberOf reads a key's number from its file's name.
func numberOf(base string) (uint32, bool) {
	n, err := strconv.ParseUint(base, 10, 32)
	return uint32(n), err == nil && n > 0
}

func (k *Keyring) path(key *key) string {
	return filepath.Join(k.dir, strconv.FormatUint(uint64(key.number), 10)+keySuffix)
}

// saveLocked writes a key's file so that it is there whole or not at all, also after a
// power cut. An error is logged.
func (k *Keyring) saveLocked(key *key) error {
	text, err := encodeKey(key)
	if err == nil {
		path := k.path(key)
		err = disk.WriteFile(path, strings.TrimSuffix(path, keySuffix)+newSuffix, text)
	}
	if err != nil {
		k.logger.Error("The file of a key could not be written.", "key", key.number, "error", err)
		return err
	}

	key.saved = true
	return nil
}

// remove removes a key's file. After a power cut it may be back; the next start
// removes it again.
func (k *Keyring) remove(key *key) {
	if err := disk.RemoveAll(k.path(key)); err != nil {
		k.logger.Error("The file of a key that is not needed any more could not be removed.",
			"key", key.number, "error", err)
	}
}
