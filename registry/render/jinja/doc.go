// Package jinja parses and renders a subset of Jinja's template language. Templates and
// variables come from callers, so steps, memory, output and nesting are bounded:
// limits.go holds every bound. Within the package failures travel as panics, which never
// leave it: see fail.go.
package jinja
