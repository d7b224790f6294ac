// Package harness starts what end-to-end scenes need: the real binary as processes, disks, an oracle, nginx and
// clients. The binary is the one that is shipped, or built with the race detector where a scene calls WatchForRaces;
// the tests themselves run without it. Browsers are in the room dashboard, and databases in postgrestest.
package harness
