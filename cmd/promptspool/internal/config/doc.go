// Package config reads the settings of commands and of both roles.
//
// A setting is a flag, an environment variable, or a line of the configuration file, in this
// order. A Reader reads the values and collects every fault, so that a person sees all of them
// together. A Reloader reads the whole command line again while a process runs, and applies it
// completely or not at all.
package config
