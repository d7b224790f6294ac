// Package wire holds what crosses the wire between an app, a sidecar and a server: the types, their
// validation and bounds, ids and errors. It does no I/O and keeps no state, so that both roles judge a
// body by the same code.
package wire
