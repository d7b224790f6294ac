package queue_test

import (
	"context"
	"fmt"
	"os"

	"promptspool/spool/queue"
)

// Store two events durably, deliver them, and forget them.
func Example() {
	dir, err := os.MkdirTemp("", "queue")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	q, err := queue.Open(queue.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	const key = 1 // whose events they are
	if err := q.Append(key, []byte("one"), []byte("two")); err != nil {
		fmt.Println(err) // nothing was stored
		return
	}

	// Up to 100 events, or 1 MiB of them, from the oldest that waits.
	entries, next, err := q.Read(ctx, q.Frontier(), 100, 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range entries {
		fmt.Printf("%d: %s\n", e.Seq, e.Data)
	}

	// Until then they come again, also after a crash.
	if err := q.Ack(next - 1); err != nil {
		fmt.Println(err)
	}
	fmt.Println(q.Status().Events, "events wait")

	// Output:
	// 1: one
	// 2: two
	// 0 events wait
}
