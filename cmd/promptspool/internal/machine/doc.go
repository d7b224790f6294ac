// Package machine is a process's dealings with its system: memory, processors, open files, sockets, and systemd.
package machine
