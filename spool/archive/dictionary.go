package archive

import _ "embed"

// BodyDictionaryID is the number of BodyDictionary in what was compressed with it.
const BodyDictionaryID = 1

// BodyDictionary is what most bodies have in common. It holds the members of calls and
// responses as the SDKs send them, and the most common words of English. Stores compress
// bodies with it (zstd, a raw dictionary), which makes a body of 4 KB a seventh smaller.
//
// It never changes, because what was compressed with it cannot be read with another. A
// new dictionary gets a new id beside it.
//
//go:embed body.dictionary
var BodyDictionary string
