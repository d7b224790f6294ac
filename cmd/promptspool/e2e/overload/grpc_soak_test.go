//go:build linux && soak

package overload

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/credentials/insecure"

	"promptspool/cmd/promptspool/e2e/harness"
)

const (
	attackTime    = 8 * time.Second
	attackers     = 300                    // connections that wait
	flooders      = 20                     // and that send as fast as they can, with pauses
	othersWaitMax = 250 * time.Millisecond // longer than without an attack
)

// TestHostileClientsOfGRPC attacks a sidecar over HTTP/2, in as much memory as it is promised to need. Meanwhile
// others write, over HTTP and over gRPC.
func TestHostileClientsOfGRPC(t *testing.T) {
	plain, err := harness.PlainBinary()
	if err != nil {
		t.Fatal(err)
	}
	sidecar := harness.Begin(t, harness.LimitMemory(t, plain, harness.CgroupBytes), nil, t.TempDir(), "127.0.0.1:0",
		"sidecar", "--upstream", "http://"+harness.FreePort(t))
	if !sidecar.Takes() {
		t.Fatal("the sidecar does not start")
	}

	quiet := waitOfOthers(t, sidecar, nil, 0)
	for _, a := range hostileCalls {
		t.Run(a.name, func(t *testing.T) {
			peak := harness.WatchMemory(t, sidecar)
			wait := waitOfOthers(t, sidecar, a.do, a.count)
			t.Logf("others wait %v at most (%v without), at most %d MiB", wait, quiet, peak()>>20)
			if wait > quiet+othersWaitMax {
				t.Errorf("others wait %v", wait)
			}
			if sidecar.Ended() {
				t.Fatalf("the sidecar was ended: signal %v", sidecar.DiedOf())
			}
		})
	}
}

// waitOfOthers returns how long a write waits at most while attackers do something again and again.
func waitOfOthers(t *testing.T, sidecar *harness.Node, attack func(*attacker), count int) time.Duration {
	t.Helper()
	end := time.Now().Add(attackTime)
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			for time.Now().Before(end) {
				if a := dialHTTP2(sidecar.Addr, end); a != nil {
					attack(a)
					_ = a.Close()
				}
				harness.PauseFor(200 * time.Millisecond)
			}
		})
	}

	export := harness.GRPCExporter(t, sidecar.Addr, insecure.NewCredentials())
	longest, calls, failed := time.Duration(0), 0, 0
	for calls = 0; time.Now().Before(end); calls++ {
		begun := time.Now()
		sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
		longest = max(longest, time.Since(begun))

		begun = time.Now()
		trace := [16]byte(fmt.Appendf(nil, "%016x", begun.UnixNano()))
		spans := []*harness.SpanSent{harness.NewSpan(trace)}
		if _, err := export(harness.ExportTraces, harness.ExportOf(spans, 500, harness.OTLPBinary)); err != nil {
			failed++
		}
		longest = max(longest, time.Since(begun))
		harness.PauseFor(10 * time.Millisecond)
	}
	all.Wait()
	// One whose connection makes room is sent again.
	if failed > calls/10 {
		t.Errorf("%d of %d exports failed", failed, calls)
	}

	return longest
}

// attacker is a connection of HTTP/2 until the end of its attack.
type attacker struct {
	net.Conn
	*http2.Framer
	end  time.Time
	head []byte // of a call
}

func dialHTTP2(addr string, end time.Time) *attacker {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil
	}
	_ = conn.SetDeadline(end)
	var head bytes.Buffer
	fields := hpack.NewEncoder(&head)
	fields.SetMaxDynamicTableSize(0)
	for _, f := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":authority", "localhost"}, {":path", harness.ExportTraces},
		{"content-type", "application/grpc"}, {"x-api-key", harness.AdminKey},
	} {
		_ = fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	a := &attacker{conn, http2.NewFramer(conn, conn), end, head.Bytes()}
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = a.WriteSettings()

	return a
}

// calls begins calls, each with a part of a message that is announced to be larger.
func (a *attacker) calls(count, size, announced int) {
	message := append([]byte{0, byte(announced >> 24), byte(announced >> 16), byte(announced >> 8), byte(announced)},
		make([]byte, size)...)
	for i := range uint32(count) {
		_ = a.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: a.head, EndHeaders: true})
		for part := range slices.Chunk(message, 16<<10) {
			_ = a.WriteData(2*i+1, false, part)
		}
	}
}

// hold waits for the end with all that was begun.
func (a *attacker) hold() { _, _ = io.Copy(io.Discard, a.Conn) }

// repeat does something until the connection is closed, or for some time.
func (a *attacker) repeat(do func(i uint32) error) {
	for i := range uint32(2000) {
		if do(i) != nil || time.Now().After(a.end) {
			return
		}
	}
}

var hostileCalls = []struct {
	name  string
	count int
	do    func(a *attacker)
}{
	{"half messages", attackers, func(a *attacker) { a.calls(16, 3000, 1<<20); a.hold() }},
	{"half large messages", attackers, func(a *attacker) { a.calls(3, 20_000, 30<<20); a.hold() }},
	{"messages of 100 MB", flooders, func(a *attacker) {
		go a.hold()
		a.calls(1, 1<<20, 100<<20)
		a.repeat(func(uint32) error { return a.WriteData(1, false, make([]byte, 16<<10)) })
	}},
	{"large heads", attackers, func(a *attacker) {
		a.head = append(a.head, bytes.Repeat([]byte("\x00\x01x\x7f\x81\x07"+string(make([]byte, 256))), 24)...)
		a.calls(16, 10, 1<<20)
		a.hold()
	}},
	{"half heads", attackers, func(a *attacker) {
		_ = a.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: a.head})
		_ = a.WriteContinuation(1, false, []byte("\x00\x01x\x01y"))
		a.hold()
	}},
	{"calls that are taken back", flooders, func(a *attacker) {
		a.repeat(func(i uint32) error {
			_ = a.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: a.head, EndHeaders: true})
			_ = a.WriteData(2*i+1, true, make([]byte, 5))
			return a.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		})
	}},
	{"pings, and nothing is read", flooders, func(a *attacker) {
		a.repeat(func(uint32) error { return a.WritePing(false, [8]byte{}) })
	}},
	{"settings", flooders, func(a *attacker) { a.repeat(func(uint32) error { return a.WriteSettings() }) }},
	{"answers that nothing reads", flooders, func(a *attacker) {
		a.repeat(func(i uint32) error {
			_ = a.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: a.head, EndHeaders: true})
			return a.WriteData(2*i+1, true, make([]byte, 5))
		})
	}},
	{"nothing but a preface", attackers, func(a *attacker) { a.hold() }},
}
