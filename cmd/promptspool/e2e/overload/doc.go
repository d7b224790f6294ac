// Package overload tests more callers, bytes and open files than a process can serve.
package overload
