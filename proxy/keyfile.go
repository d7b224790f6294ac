package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// readKeys reads the files of a ring's folder, and creates it when absent.
func readKeys(dir string, logger *slog.Logger) ([]*key, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of the keys: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the folder of the keys: %w", err)
	}
	var keys []*key
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), keySuffix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		key, err := readKey(path)
		if errors.Is(err, errDamaged) {
			logger.Error("the file of a key is damaged and was set aside as .bad; the events of this key will be held", "file", path, "error", err)
			if err := os.Rename(path, path+".bad"); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

var errDamaged = errors.New("not the file of a key")

func readKey(path string) (*key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	number, err := numberOf(filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errDamaged, err)
	}
	k := new(key)
	if err := json.Unmarshal(text, k); err != nil {
		return nil, fmt.Errorf("%w: %v", errDamaged, err)
	}
	if k.Number != number || k.Secret == "" {
		return nil, fmt.Errorf("%w: its content is of another key", errDamaged)
	}
	return k, nil
}

// save writes a key's file so that it is there whole or not at all, also after a power cut. An error is logged; who needs
// the file to be there looks at it. Called with the mutex held: a first use may wait for an fsync.
func (k *Keyring) save(key *key) error {
	err := func() error {
		text, err := json.Marshal(key)
		if err != nil {
			return err
		}
		path := k.path(key.Number)
		f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		if err := os.Rename(path+".tmp", path); err != nil {
			return err
		}
		return syncFolder(k.dir)
	}()
	if err != nil {
		k.logger.Error("the file of a key could not be written", "key", key.Number, "error", err)
	}
	return err
}

// erase forgets a key and removes its file. Called with the mutex held.
func (k *Keyring) erase(key *key) {
	k.forget(key)
	if err := os.Remove(k.path(key.Number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.logger.Error("the file of a key that is not needed any more could not be removed", "key", key.Number, "error", err)
	}
}

func (k *Keyring) forget(key *key) {
	delete(k.byHash, key.hash)
	delete(k.byNumber, key.Number)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
