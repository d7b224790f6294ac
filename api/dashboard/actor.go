package dashboard

import "promptspool/api/wire"

// nameKeys replaces the ids of keys among authors by the keys' names.
func (d *Dashboard) nameKeys(c *call, authors ...*string) error {
	var names map[string]string
	for _, author := range authors {
		id := wire.ActingKey(*author)
		if id == "" {
			continue
		}

		// Most pages have no key, and need not read them.
		if names == nil {
			keys, err := d.keys(c)
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
