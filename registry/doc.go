// Package registry keeps prompt templates: named texts with immutable versions 1, 2, ...,
// labels that point to a version, and a feed of what changed.
//
// Registry is the server's side, over a database (Store). Cache is the sidecar's side,
// over its server (Upstream): it keeps every template that was ever fetched on disk,
// follows the feed, and serves what it has while the server is away. Both render with the
// same code, so an app gets the same answer from either.
package registry
