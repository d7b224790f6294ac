//go:build linux && bench

package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

const (
	benchTime       = 4 * time.Second // of each cell of the table
	benchBytesMax   = 2 << 30         // of bodies, of each cell
	backlogEvents   = 1_000_000
	backlogBytes    = 4096
	backlogPatience = 10 * time.Minute
)

// BenchmarkBesideTheFloors measures the sidecar, as it is shipped and with its server
// away, beside two floors in the same run: a handler that does nothing, and one that
// appends to a file with one fdatasync for all that wait. It prints a table.
func BenchmarkBesideTheFloors(b *testing.B) {
	for _, bytes := range []int{4096, 100_000} {
		for _, connections := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("%dKB/%d", bytes/1000, connections), func(b *testing.B) {
				p := pressure{
					Connections: connections,
					Bytes:       bytes,
					Time:        benchTime,
					Requests:    benchBytesMax / int64(bytes),
				}
				for range b.N {
					besideTheFloors(b, p)
				}
			})
		}
	}
}

// besideTheFloors prints the rows of one cell.
func besideTheFloors(b *testing.B, p pressure) {
	b.Helper()
	fmt.Printf("\n%-9s %5s  %-8s %9s %9s %9s %7s %9s\n",
		"body", "conns", "who", "req/s", "p50", "p99", "of file", "p99/file")
	var file pace
	for _, who := range []string{"nothing", "file", "sidecar"} {
		got := pressOn(b, who, p)
		fmt.Printf("%-9d %5d  %-8s %9.0f %9s %9s",
			p.Bytes, p.Connections, who, got.PerSecond, harness.Rounded(got.P50), harness.Rounded(got.P99))
		if who == "file" {
			file = got
		}
		if who != "nothing" {
			fmt.Printf(" %7.2f %9.2f", got.PerSecond/file.PerSecond, float64(got.P99)/float64(file.P99))
		}
		fmt.Println()
	}
}

// BenchmarkBacklog leaves a million events with a sidecar while its server is away, and
// prints what they cost, until they are delivered to a server.
func BenchmarkBacklog(b *testing.B) {
	for range b.N {
		upstream := harness.FreePort(b)
		sidecar := startMeasured(b, b.TempDir(), upstream)
		idle := harness.HeldBy(b, sidecar)
		idlePeak := harness.MemoryOf(b, sidecar, "VmHWM")
		got := press(b, pressure{
			Addr:        sidecar.Addr,
			Connections: 64,
			Bytes:       backlogBytes,
			Time:        backlogPatience,
			Requests:    backlogEvents,
		})

		full := harness.HeldBy(b, sidecar)
		payload := got.Requests * backlogBytes
		fmt.Printf("\nidle: %v, peak resident %d MiB\n", idle, idlePeak>>20)
		fmt.Printf("after %d events of %d bytes at %.0f/s: %v, peak resident %d MiB, disk/payload %.3f\n",
			got.Requests, backlogBytes, got.PerSecond, full, harness.MemoryOf(b, sidecar, "VmHWM")>>20,
			float64(full.Disk)/float64(payload))
		fmt.Printf("five seconds later: %v\n", heldLater(b, sidecar))

		sidecar.Kill()

		begun := time.Now()
		sidecar = beginMeasured(b, sidecar.Data, upstream)
		if !sidecar.Takes() {
			b.Fatal("the sidecar does not start again")
		}
		press(b, pressure{Addr: sidecar.Addr, Connections: 1, Bytes: backlogBytes, Time: time.Minute, Requests: 1})
		fmt.Printf("killed and started again: %.2f s to the first 200, "+
			"which includes some 0.05 s of starting the load\n",
			time.Since(begun).Seconds())

		drain(b, sidecar, upstream)
		sidecar.Kill()
	}
}

// drain gives a sidecar its server, and prints how quickly the backlog goes there.
func drain(b *testing.B, sidecar *harness.Node, upstream string) {
	b.Helper()
	server := harness.BeginPlain(b, b.TempDir(), upstream, "server")
	if !server.Takes() {
		b.Fatal("the server does not start")
	}

	events, peak := sidecar.Waiting(), int64(0)
	begun, before := time.Now(), cpuOf(b, sidecar)
	for sidecar.Waiting() != 0 {
		peak = max(peak, harness.MemoryOf(b, sidecar, "RssAnon"))
		if time.Since(begun) > backlogPatience {
			b.Fatal("the draining does not end")
		}
		harness.PauseFor(20 * time.Millisecond)
	}
	fmt.Printf("delivered at %.0f/s, %.2f core-seconds of the sidecar per 10,000, at most %d MiB anonymous\n",
		float64(events)/time.Since(begun).Seconds(), (cpuOf(b, sidecar)-before).Seconds()/float64(events)*10_000,
		peak>>20)
	server.Kill()
}

// heldLater returns what a sidecar holds some time after the load.
func heldLater(b *testing.B, sidecar *harness.Node) harness.Holding {
	b.Helper()
	<-time.After(5 * time.Second)
	return harness.HeldBy(b, sidecar)
}

// pressOn runs a load on a fresh one of the three.
func pressOn(b *testing.B, who string, p pressure) pace {
	b.Helper()
	dir := b.TempDir()
	defer os.RemoveAll(dir) // the next needs the space
	switch who {
	case "sidecar":
		sidecar := startMeasured(b, dir, harness.FreePort(b))
		p.Addr = sidecar.Addr
		defer sidecar.Kill()
	case "nothing":
		p.Addr = startFloor(b)
	default:
		p.Addr = startFloor(b, "FLOOR="+dir)
	}
	return press(b, p)
}

// startFloor starts a floor that runs until the benchmark's end, and returns its address.
func startFloor(b *testing.B, env ...string) string {
	b.Helper()
	addr, _ := startFloorProcess(b, env...)
	return addr
}

func startFloorProcess(b *testing.B, env ...string) (addr string, pid int) {
	b.Helper()
	floor := exec.Command(os.Args[0])
	floor.Env = append(append(os.Environ(), harness.HelperVariable+"=floor"), env...)
	out, err := floor.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := floor.Start(); err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { _, _ = floor.Process.Kill(), floor.Wait() })
	if addr, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		b.Fatal("the floor: ", err)
	}
	return strings.TrimSpace(addr), floor.Process.Pid
}

// startMeasured starts a sidecar that knows the key and whose server is away. With a key
// that it does not know it would accept only a part of what the spool may hold.
func startMeasured(b *testing.B, data, upstream string) *harness.Node {
	b.Helper()
	server := harness.BeginPlain(b, filepath.Join(data, "server"), upstream, "server")
	sidecar := beginMeasured(b, filepath.Join(data, "sidecar"), upstream)
	if !server.Takes() || !sidecar.Takes() {
		b.Fatal("server or sidecar do not start")
	}
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Eventually(
		func() bool { return sidecar.Waiting() == 0 },
		func() string { return "the spool does not empty" },
	)
	server.Kill()
	return sidecar
}

func beginMeasured(b *testing.B, data, upstream string) *harness.Node {
	return harness.BeginPlain(b, data, "127.0.0.1:0", "sidecar", "--upstream", "http://"+upstream,
		"--spool-bytes-max", "16GiB")
}
