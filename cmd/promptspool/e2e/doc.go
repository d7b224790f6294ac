// Package e2e is the house of the program's whole stories. Its rooms run the real binary as processes, over real
// sockets, disks and databases; the package harness starts them. What is tested within one process belongs in the
// package that it is about.
package e2e
