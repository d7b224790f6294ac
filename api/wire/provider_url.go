package wire

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	"promptspool/api/wire/jsonscan"
)

// ProviderBaseURLs are the URLs at which apps should call providers, by the provider's
// name.
type ProviderBaseURLs map[string]string

// ProviderBaseURL is one of them, as a template's reply has it. Clients read only its
// URL.
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
	base := &ProviderBaseURL{Name: provider, Provider: provider, URL: url}
	// Counted, because a map has no order: the same providers always get the same ids.
	for other := range u {
		if other <= provider {
			base.ID++
		}
	}

	return base
}

// Digest returns a short hash, by which two processes learn whether they have the same
// URLs.
func (u ProviderBaseURLs) Digest() string {
	text, _ := json.Marshal(map[string]string(u)) // sorted by key; a map of strings always encodes
	if len(u) == 0 {
		text = nil // a nil map and an empty one are the same
	}

	h := fnv.New64a()
	_, _ = h.Write(text) // a hash never fails

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
