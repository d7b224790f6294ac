// Package folder is the folder of a Badger database: who may open it, which version wrote
// it, and how it is opened after a crash.
//
// It knows Badger's files, and nothing of the keys in them.
package folder
