// Package print writes what commands show: tables, trends and JSON.
//
// The shown text may come from anybody, so nothing in it reaches a terminal that could
// drive it.
package print
