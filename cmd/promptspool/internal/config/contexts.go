package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/datafolder"
)

// Context is a server that `login` keeps, with the key for it.
type Context struct {
	URL string `json:"url"`
	Key string `json:"key"`
}

// Contexts are the servers that a person has logged in to.
type Contexts struct {
	Current string             `json:"current"` // the one that counts if no other is named
	Named   map[string]Context `json:"contexts"`
}

// contextsFile is in the person's folder for settings, which each system has elsewhere.
func contextsFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "promptspool", "contexts.json"), err
}

// ReadContexts returns the contexts that are kept.
func ReadContexts() (Contexts, error) {
	all := Contexts{Named: map[string]Context{}}
	path, err := contextsFile()
	if err != nil {
		// A service without a home has none.
		return all, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	return all, errors.Join(err, json.Unmarshal(text, &all))
}

// Names returns the contexts' names, sorted.
func (all Contexts) Names() []string { return slices.Sorted(maps.Keys(all.Named)) }

// Save keeps the contexts in a file that only its owner can read: it has their keys.
func (all Contexts) Save() error {
	path, err := contextsFile()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return err
	}
	// Texts alone can always be encoded.
	text, _ := json.MarshalIndent(all, "", "  ")
	return os.WriteFile(path, text, 0o600)
}

// ServerFound is where an app's metadata has a sentence about a server that no setting named.
const ServerFound = "server found"

// server returns the URL and the key of the server to call: those of flags, of variables, of a context, or of an `up`
// that was started here. A context that a flag names counts for more than variables.
func (r *Reader) server() (url, key string) {
	all, err := ReadContexts()
	r.Note(err)
	name := r.Text("context")
	chosen, known := all.Named[cmp.Or(name, all.Current)]
	if name != "" && !known {
		r.Reject("context", "is not a context; `promptspool contexts list` shows them"+
			words.DidYouMean(name, all.Names()))
	}

	flagged := name != "" && originOf(r.c, flagOf(r.c, "context")) == "--context"
	given := func(flag string) bool {
		return r.c.IsSet(flag) && hasValue(r.c, flag) && (!flagged || originOf(r.c, flagOf(r.c, flag)) == "--"+flag)
	}
	url = r.Text("url")
	if known && !given("url") {
		url = chosen.URL
	}
	// A key goes to no other server than the one that it was kept for.
	key = r.Text("key")
	if url == chosen.URL && !given("key") {
		key = chosen.Key
	}

	// Last, because a person who names a server may be in the folder of another.
	here := DataHere(r.c)
	if here != "" && !known && !given("url") && r.Sound() {
		switch at, itsKey, err := datafolder.ServerOf(r.c.Context, here); {
		case key == "" && err != nil:
			r.Note(Usagef(r.c, "--key (or %s) is missing, and not found in %s: %v", Variables("key")[0], here, err))
		case at != "":
			url, key = at, cmp.Or(key, itsKey)
			r.c.App.Metadata[ServerFound] = "\nThis asked " + at + ": no server is named, and " + here + " is here."
		}
	}
	if key == "" && r.Sound() {
		r.Required("key")
	}
	return url, key
}
