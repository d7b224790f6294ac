// Package e2e tells the program's whole stories. Its tests and benchmarks run the real binary as processes, over
// real sockets, disks and databases. The binary is the one that is shipped, or built with the race detector where a
// scene calls watchForRaces. `make test` runs this package itself without the race detector: what is tested within
// one process belongs in the package that it is about.
package e2e
