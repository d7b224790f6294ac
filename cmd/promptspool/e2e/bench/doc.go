// Package bench measures whole processes, beside the floors that the machine sets: what `make bench` runs of the
// end-to-end tests.
package bench
