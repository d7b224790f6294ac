//go:build linux && bench

package bench

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// runFloor runs a process that does as little as a sidecar could do: read a call, keep it
// if FLOOR names a folder, and answer 200, with FLOOR_ANSWER if it is set. It prints its
// address and runs until it is killed.
func runFloor() {
	keep := func([]byte) error { return nil }
	if dir := os.Getenv("FLOOR"); dir != "" {
		file, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		log := &floorLog{file: file}
		log.free.L = &log.mu
		keep = log.append
	}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answer := cmp.Or(os.Getenv("FLOOR_ANSWER"),
		`{"success":true,"message":"Request logged.","request_id":"01890c3e-7c2b-7000-8000-000000000001"}`)
	fmt.Println(ln.Addr())

	s := fasthttp.Server{MaxRequestBodySize: 64 << 20, Handler: func(c *fasthttp.RequestCtx) {
		if err := keep(c.PostBody()); err != nil {
			c.Error(err.Error(), 503)
			return
		}
		c.SetContentType("application/json")
		c.SetBodyString(answer)
	}}
	fmt.Fprintln(os.Stderr, s.Serve(ln))
}

// floorLog is a file to which writes are appended: all that wait share one write and one
// fdatasync.
type floorLog struct {
	file *os.File

	mu      sync.Mutex
	free    sync.Cond // on mu: nobody syncs
	syncing bool
	waiting *floorGroup
}

// floorGroup are writes that are synced together.
type floorGroup struct {
	bytes []byte
	done  bool
	err   error
}

// append returns when body is on the disk. A caller that finds nobody syncing syncs for
// everybody who waits.
func (l *floorLog) append(body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = &floorGroup{}
	}

	group := l.waiting
	group.bytes = append(group.bytes, body...)
	for l.syncing && !group.done {
		l.free.Wait()
	}

	if group.done {
		return group.err
	}
	l.syncing, l.waiting = true, nil
	l.mu.Unlock()

	_, err := l.file.Write(group.bytes)
	if err == nil {
		err = unix.Fdatasync(int(l.file.Fd()))
	}

	l.mu.Lock()
	l.syncing, group.done, group.err = false, true, err
	l.free.Broadcast()
	return err
}
