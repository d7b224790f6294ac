package frame

import (
	"context"
	"slices"

	"promptspool/api/wire"
)

// Keys lists the API keys of all accounts, and makes the first one of a new account.
type Keys interface {
	Keys(ctx context.Context) ([]wire.Key, error)
	CreateKey(ctx context.Context, n wire.NewKey) (wire.Secret, wire.Key, error)
}

// Keys returns the keys of the reader's account, the newest first.
func (c *Exchange) Keys() ([]wire.Key, error) {
	all, err := c.frame.Keys.Keys(c.Context())
	slices.Reverse(all)
	others := func(k wire.Key) bool { return k.AccountID != c.User.AccountID }

	return slices.DeleteFunc(all, others), err
}

// NameKeys replaces the ids of keys among authors by the keys' names.
func (c *Exchange) NameKeys(authors ...*string) error {
	var names map[string]string
	for _, author := range authors {
		id := wire.ActingKey(*author)
		if id == "" {
			continue
		}

		// Most pages have no key, and need not read them.
		if names == nil {
			keys, err := c.Keys()
			if err != nil {
				return err
			}
			names = map[string]string{}
			for _, k := range keys {
				names[k.ID] = k.Name
			}
		}
		if name := names[id]; name != "" {
			*author = "key " + name
		}
	}

	return nil
}
