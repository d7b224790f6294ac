// Package spool is a durable queue of events on one disk.
package spool
