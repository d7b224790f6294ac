// Package calls reads model calls out of the bodies of requests, whichever provider's API
// they followed.
//
// A call is recognised by the shape of its parts, not by function_name, which callers
// choose as they like. Nothing here fails: what cannot be read is missing, and the body
// itself stays with the record. Bodies come from anybody, so reading one costs time and
// memory in proportion to its bytes.
//
// Read is the way in. Messages, streams, usage, failures and images each have a file; the
// blueprints at the end turn a call into a form that belongs to no provider. A Story finds what
// each call of a session added to those before it.
package calls
