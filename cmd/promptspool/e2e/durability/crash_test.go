//go:build linux

package durability

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/crashpoint"
)

// beginCrashing starts a sidecar of harness.CrashBinary with a bound of its spool, and does
// not wait for it.
func beginCrashing(t *testing.T, bound, data, addr, upstream string, env ...string) *harness.Node {
	t.Helper()
	program, err := harness.CrashBinary()
	if err != nil {
		t.Fatal(err)
	}
	return harness.Begin(t, program, env, data, addr, "sidecar", "--name", "pod-1", "--upstream", "http://"+upstream,
		"--spool-bytes-max", bound, "--drain", "5s")
}

func TestKillingTwoSidecarsAndTheirServerAtRandomLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	harness.WatchForRaces(t)
	serverData, addr := t.TempDir(), harness.FreePort(t)
	server := harness.StartServer(t, serverData, addr)
	var sidecars [2]*harness.Node
	var data, at [2]string
	start := func(i int) {
		sidecars[i] = harness.Launch(t, data[i], at[i],
			"sidecar", "--name", fmt.Sprintf("pod-%d", i+1), "--upstream", "http://"+addr)
	}
	for i := range sidecars {
		data[i], at[i] = t.TempDir(), harness.FreePort(t)
		start(i)
	}

	o := harness.StartOracle(t, harness.AdminKey)
	o.LoadBoth(sidecars[0], sidecars[1], 4, 1000)

	for round := range harness.Rounds(t, 5, 0.3) {
		harness.PauseFor(time.Duration(100+rand.IntN(400)) * time.Millisecond)
		victim := rand.IntN(3) // a sidecar, or 2: the server
		if round < 3 {
			victim = round // each at least once
		}
		if victim == 2 {
			server.Kill()
			server = harness.StartServer(t, serverData, addr)
			continue
		}

		sidecars[victim].Kill()
		start(victim)
	}

	o.Halt()
	for _, s := range sidecars {
		s.Emptied()
		if status := s.SpoolStatus(); status["gaps"] != 0.0 || status["dead"] != 0.0 || status["held"] != 0.0 {
			t.Errorf("the spool says %v", status)
		}
	}

	if a := o.WantAll(server); a.Acked < 20 || a.Spans < 5 || a.Scored < 40 {
		t.Errorf("only %d writes, %d of them spans, and %d scores were acked; the test shows nothing",
			a.Acked, a.Spans, a.Scored)
	}
}

// crashpoints are the moments of a sidecar that crashpoint.Reach is called with. Those of lanes that drop
// are met by dead letters of limits only: see delivery/limit_test.go.
var crashpoints = []string{
	crashpoint.BeforeCommit,
	crashpoint.BeforeSync,
	crashpoint.AfterCommit,
	crashpoint.GenerationMake,
	crashpoint.GenerationMkdir,
	crashpoint.GenerationOpened,
	crashpoint.GenerationNamed,
	crashpoint.GenerationSeal,
	crashpoint.GenerationClosed,
	crashpoint.GenerationRenamed,
	crashpoint.BetweenSendAndAck,
	crashpoint.LaneSynced,
}

func TestDyingAtEachNamedPointLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for round := range harness.Rounds(t, 1, 0.25) {
		for _, point := range crashpoints {
			// The first time that a point is reached; in later rounds a later time, if
			// there surely is one: a life makes two generations at least and fills one.
			count := 1
			switch point {
			case crashpoint.BeforeCommit, crashpoint.BeforeSync, crashpoint.AfterCommit,
				crashpoint.BetweenSendAndAck:
				count += round % 3
			case crashpoint.GenerationMake, crashpoint.GenerationMkdir, crashpoint.GenerationOpened:
				count += round % 2
			}
			t.Run(fmt.Sprintf("%s:%d", point, round+1), func(t *testing.T) { dieAt(t, point, count) })
		}
	}
}

// dieAt takes a sidecar through its life until it dies at a point: writes while the
// server is away, a key that the server then refuses, delivery of more than a generation
// holds; a kill, a new start, a stop. Then it starts one that does not die, and looks for
// everything that was acked. After the kill, the point counts the first time that it is
// reached. A small spool has small generations, of 4 MiB, and so soon fills one.
func dieAt(t *testing.T, point string, count int) {
	const spool = "64MiB"
	data, sidecarAddr, serverAddr := t.TempDir(), harness.FreePort(t), harness.FreePort(t)
	start := func(count int) *harness.Node {
		at := fmt.Sprintf("PROMPTSPOOL_CRASH_AT=%s:%d", point, count)
		return beginCrashing(t, spool, data, sidecarAddr, serverAddr, at)
	}

	good, bad := harness.StartOracle(t, harness.AdminKey), harness.StartOracle(t, "a key that no server knows")
	bad.Spans = 0 // a held event for each write
	sidecar := start(count)

	alive := func() bool { return !sidecar.Ended() }

	loaded := func(o *harness.Oracle, writers, bytes, acks int) {
		o.Load(sidecar, writers, bytes, o.Count().Acked+acks)
		sidecar.Eventually(
			func() bool { return !alive() || !o.Count().Loading },
			func() string { return fmt.Sprintf("the load does not end: %+v", o.Count()) },
		)
		o.Halt()
	}

	emptied := func() {
		sidecar.Eventually(
			func() bool { return !alive() || sidecar.Waiting() == 0 },
			func() string { return "the spool does not empty" },
		)
	}

	if sidecar.Takes() {
		loaded(bad, 2, 2000, 20)
		loaded(good, 2, 2000, 20)
	}
	// The server comes. What does not fit in one generation is delivered.
	server := harness.StartPlainServer(t, serverAddr)
	if alive() {
		loaded(good, 4, 64<<10, 100) // some 6 MiB, more than a generation holds
		emptied()
	}
	if alive() {
		sidecar.Kill()
		sidecar = start(1)
		if sidecar.Takes() {
			emptied()
		}
	}
	if alive() {
		_ = sidecar.Cmd.Process.Signal(syscall.SIGTERM)
	}
	if sidecar.DiedOf() != syscall.SIGKILL || sidecar.Killed {
		t.Fatalf("the point %s was not reached, or the sidecar ended in another way", point)
	}

	sidecar = beginCrashing(t, spool, data, sidecarAddr, serverAddr)
	if !sidecar.Takes() {
		t.Fatal("the sidecar does not start after the crash")
	}

	good.Loaded(sidecar, 4, 2000, good.Count().Acked+20)
	sidecar.Emptied()

	a, b, s := good.WantAll(server), bad.Count(), sidecar.SpoolStatus()
	held := int(s["held"].(float64))

	if s["gaps"] != 0.0 || s["dead"] != 0.0 || held < b.Acked || held > b.Acked+b.Unsure {
		t.Errorf("of the key that the server refuses, %d writes were acked and %d unsure; the spool says %v",
			b.Acked, b.Unsure, s)
	}

	t.Logf("%d acked, %d unsure, %d held", a.Acked, a.Unsure, held)
}
