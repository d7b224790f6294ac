// Package render turns a prompt template into the arguments of a model call: it checks a blueprint when it is published, fills
// in variables (Python's format grammar), and translates the outcome for a provider's own client (llm_kwargs). It is pure:
// the same input gives the same bytes, on a server and on a sidecar, without I/O, state or clock. Work, output and nesting
// are bounded, for both templates and variables come from callers. Numbers and members that it does not know
// keep their text. Safe for concurrent use; what comes in is never changed, what goes out may alias it.
package render
