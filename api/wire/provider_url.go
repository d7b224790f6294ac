package wire

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	"promptspool/api/wire/jsonscan"
)

// ProviderBaseURLs are the URLs under which apps are to call providers, by the provider's name.
type ProviderBaseURLs map[string]string

// ProviderBaseURL is one of ProviderBaseURLs, as the reply to a fetch has it. Clients of the peer read its url; the rest is for people.
type ProviderBaseURL struct {
	ID       int64  `json:"id"` // from 1, in the order of the providers' names
	Name     string `json:"name"`
	Provider string `json:"provider"`
	URL      string `json:"url"`
}

// Of returns the URL for a provider; nil if there is none.
func (u ProviderBaseURLs) Of(provider string) *ProviderBaseURL {
	url, ok := u[provider]
	if !ok || url == "" {
		return nil
	}

	of := &ProviderBaseURL{Name: provider, Provider: provider, URL: url}
	for other := range u {
		if other <= provider {
			of.ID++
		}
	}

	return of
}

// Digest is short, and different for different URLs: two who compare theirs learn whether they have the same.
func (u ProviderBaseURLs) Digest() string {
	text, _ := json.Marshal(map[string]string(u)) // sorted; a map of strings encodes
	if len(u) == 0 {
		text = nil // none, whether the map is nil or empty
	}

	h := fnv.New64a()
	_, _ = h.Write(text)

	return fmt.Sprintf("%016x", h.Sum64())
}

func appendProviderBaseURL(b []byte, u *ProviderBaseURL) []byte {
	if u == nil {
		return append(b, "null"...)
	}

	b = strconv.AppendInt(append(b, `{"id":`...), u.ID, 10)
	b = jsonscan.AppendString(append(b, `,"name":`...), u.Name)
	b = jsonscan.AppendString(append(b, `,"provider":`...), u.Provider)
	b = jsonscan.AppendString(append(b, `,"url":`...), u.URL)

	return append(b, '}')
}
