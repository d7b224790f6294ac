// Package gitfiles reads and writes prompt templates as YAML files, which can be kept in
// Git.
//
// A File is one template, a Folder all of a tree. Reading is strict: it reports every
// fault with its line. Writing chooses the most readable form that is read back to the
// same content.
//
// The package knows no server: the commands compare a Folder with one, and publish.
package gitfiles
