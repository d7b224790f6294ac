// Package python writes JSON values as Python does: str, repr and format, whose format
// specs it parses. It is pure, and bounded by the length of what it is given.
package python
