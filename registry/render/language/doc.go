// Package language holds what the template languages share: what they render into, with
// the variables and the bounds of one rendering, and errors that know their place in a
// text.
package language
