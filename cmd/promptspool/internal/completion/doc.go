// Package completion lets shells complete command lines: by commands and flags, and by values of the server
// that the command would ask.
package completion
