// Command load sends the set of package seed to a running server, to look at its pages with something in them.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"promptspool/cmd/promptspool/e2e/seed"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: load URL KEY, such as http://127.0.0.1:8788 and a key of the scope full")
		os.Exit(2)
	}
	if err := seed.New(time.Now()).Send(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
