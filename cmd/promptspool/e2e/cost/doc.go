// Package cost tests that a call costs in proportion to its bytes, whatever is in it: hostile shapes for every route,
// and a fuzzer on the listeners.
package cost
