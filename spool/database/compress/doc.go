// Package compress is the form in which stores keep bodies, states and columns: compressed,
// where that makes them smaller.
package compress
