// Package fstring parses and renders texts in the format grammar of Python's str.format.
// Rendering reads JSON values only; its work and its output are bounded.
package fstring
