package main

import "os"

// endBy ends the process as an interruption does.
func endBy(os.Signal) { os.Exit(1) }
