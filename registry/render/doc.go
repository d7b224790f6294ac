// Package render turns a prompt template into the arguments of a model call.
//
// It checks a blueprint when it is published (Check), joins its snippets (Expand), parses
// its texts (Prepare), and then, for each call, fills in variables and writes the
// arguments of a provider's own client (Prepared.Kwargs).
//
// It is pure: the same input gives the same bytes, on a server and on a sidecar, without
// I/O, state or clock. Work, output and nesting are bounded, because both templates and
// variables come from callers. Numbers and unknown members keep their text. It is safe
// for concurrent use; input is never changed, and output may alias it.
package render
