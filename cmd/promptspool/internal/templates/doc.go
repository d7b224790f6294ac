// Package templates has the commands `promptspool templates ...`: they list, render and
// label templates, and publish them from files.
package templates
