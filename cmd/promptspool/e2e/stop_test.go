//go:build linux

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAStopTakesWritesUntilNobodyCalls(t *testing.T) {
	server := startPlainServer(t, freePort(t))
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	last := sidecar.track("/rest/track-request", adminKey, chat())
	if err := sidecar.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	sidecar.eventually(
		func() bool { return strings.Contains(sidecar.logged(), `"msg":"stopping"`) },
		func() string { return "the sidecar does not stop" },
	)

	for begun := time.Now(); time.Since(begun) < time.Second; {
		last = sidecar.track("/rest/track-request", adminKey, chat())
	}
	select {
	case <-sidecar.eof:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody calls, and the sidecar does not end")
	}
	if err := sidecar.cmd.Wait(); err != nil {
		t.Errorf("the sidecar ended with %v", err)
	}
	server.record(last, events(1))
}

func TestAStopEndsInTimeWithTheServerAwayAndWritersThatGoOn(t *testing.T) {
	t.Parallel()
	sidecar := startSidecar(t, t.TempDir(), freePort(t))
	o := startOracle(t, adminKey)
	o.load(sidecar, 2, 100, 0)
	sidecar.eventually(func() bool { return o.count().Acked > 10 }, func() string { return "nothing is taken" })
	begun := time.Now()
	sidecar.stop() // within 25 s, with exit code 0
	acked := o.halt().Acked
	if took := time.Since(begun); took < 7*time.Second {
		t.Errorf("the sidecar ended after %v, during writes", took)
	}
	log := sidecar.logged()
	if !strings.Contains(log, "stopping with events that the server does not have yet") ||
		!strings.Contains(log, `"data":"`+sidecar.data+`"}`) {
		t.Errorf("the log does not say what stays, and where:\n%s", log)
	}
	if again := startSidecar(t, sidecar.data, freePort(t)); again.waiting() < acked {
		t.Errorf("%d writes were acked, and %d events wait after the next start", acked, again.waiting())
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	sidecar := startSidecar(t, t.TempDir(), freePort(t), "--drain", "1h")
	sidecar.track("/rest/track-request", adminKey, chat())
	term := func() {
		if err := sidecar.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}

	term()
	sidecar.eventually(
		func() bool { return strings.Contains(sidecar.logged(), `"msg":"stopping"`) },
		func() string { return "the sidecar does not stop" },
	)

	term()
	select {
	case <-sidecar.eof:
	case <-time.After(20 * time.Second):
		t.Fatal("the sidecar goes on after the second signal")
	}

	_ = sidecar.cmd.Wait()
	again := startSidecar(t, sidecar.data, freePort(t))
	if n := again.spoolStatus()["events"]; n != 1.0 {
		t.Errorf("after the second signal the spool holds %v events; want 1", n)
	}
}
