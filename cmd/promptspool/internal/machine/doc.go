// Package machine fits a process to what its machine allows: memory, processors and open files.
package machine
