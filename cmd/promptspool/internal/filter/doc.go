// Package filter has the flags that say which records a command is about.
package filter
