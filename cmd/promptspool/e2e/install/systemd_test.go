//go:build linux

package install

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// supervisor starts what a unit of systemd's names, and decides like systemd whether to start it
// again. Waiting between starts takes no time.
type supervisor struct {
	*testing.T
	settings map[string]string // of the unit
	dir      string            // of the service's settings
	data     string            // the service's folder
	notify   *net.UnixConn
	started  []time.Duration // the last starts, on a clock that waits for nothing
	clock    time.Duration
}

// supervise reads a unit. What is not in it has systemd's defaults.
func supervise(t *testing.T, unit string) *supervisor {
	t.Helper()
	s := &supervisor{T: t, dir: t.TempDir(), settings: map[string]string{
		"RestartSec": "100ms", "StartLimitIntervalSec": "10s",
	}}
	s.data = filepath.Join(s.dir, "data")
	for line := range strings.Lines(unit) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			s.settings[name] = value
		}
	}

	var err error
	addr := &net.UnixAddr{Name: filepath.Join(s.dir, "notify"), Net: "unixgram"}
	if s.notify, err = net.ListenUnixgram("unixgram", addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.notify.Close() })

	return s
}

func (s *supervisor) duration(name string) time.Duration {
	s.Helper()
	text := s.settings[name]
	if text == "0" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		s.Fatalf("%s=%s: %v", name, text, err)
	}

	return d
}

// allows reports whether systemd would start the service once more: by default five times within
// StartLimitIntervalSec.
func (s *supervisor) allows() bool {
	s.Helper()
	interval := s.duration("StartLimitIntervalSec")
	s.started = append(s.started, s.clock)
	recent := 0
	for _, start := range s.started {
		if s.clock-start < interval {
			recent++
		}
	}

	return interval == 0 || recent <= 5
}

// start starts the service, if systemd would. It returns the running process once that has
// notified its readiness, or nil if it ended before.
func (s *supervisor) start() (running *exec.Cmd, allowed bool) {
	s.Helper()
	if !s.allows() {
		return nil, false
	}

	line := strings.NewReplacer("${STATE_DIRECTORY}", s.data, "/etc/promptspool", s.dir)
	args := strings.Fields(line.Replace(s.settings["ExecStart"]))
	cmd := exec.Command(harness.Program(s), args[1:]...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(s.dir, "notify"))
	began := time.Now()
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
		_ = s.notify.SetReadDeadline(time.Now()) // it notifies nothing more
	}()
	defer func() { s.clock += time.Since(began) + s.duration("RestartSec") }()

	extended := false
	for message := make([]byte, 256); ; {
		n, err := s.notify.Read(message)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			<-ended
			_ = s.notify.SetReadDeadline(time.Time{})
			return nil, true
		}
		if err != nil {
			s.Fatal(err)
		}

		switch text := string(message[:n]); {
		case strings.HasPrefix(text, "EXTEND_TIMEOUT_USEC="):
			extended = true
		case text == "READY=1":
			if !extended {
				s.Error("it did not ask for more time while it started")
			}
			s.Cleanup(func() {
				_ = cmd.Process.Kill()
				<-ended
			})
			return cmd, true
		}
	}
}

// unitOf returns the unit of a role as it is shipped.
func unitOf(t *testing.T, role string) string {
	t.Helper()
	unit, err := os.ReadFile("../../deploy/systemd/promptspool-" + role + ".service")
	if err != nil {
		t.Fatal(err)
	}

	return string(unit)
}

// goodSettings are those of services that take ports of their own.
const goodSettings = "server:\n  listen: 127.0.0.1:0\n  ops-listen: 127.0.0.1:0\n" +
	"sidecar:\n  listen: 127.0.0.1:0\n  ops-listen: 127.0.0.1:0\n  upstream: http://127.0.0.1:1\n"

// edit writes the service's settings.
func (s *supervisor) edit(settings string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "config.yaml"), []byte(settings), 0o600); err != nil {
		s.Fatal(err)
	}
}

// failsToStart starts the service ten times. It fails the test if the service runs, or is given up.
func (s *supervisor) failsToStart() {
	s.Helper()
	for n := range 10 {
		if running, allowed := s.start(); running != nil || !allowed {
			s.Fatalf("start %d: running %v, allowed %v", n, running != nil, allowed)
		}
	}
}

// starts starts the service once more.
func (s *supervisor) starts(why string) {
	s.Helper()
	if running, allowed := s.start(); running == nil {
		s.Errorf("it is not started %s: allowed %v", why, allowed)
	}
}

func TestAServiceIsStartedUntilItsFaultIsMended(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"server", "sidecar"} {
		t.Run(role, func(t *testing.T) {
			unit := unitOf(t, role)
			if !strings.Contains(unit, "\nType=notify\n") {
				t.Error("systemd does not wait for its readiness")
			}

			// A bad edit of the settings, found after ten starts.
			s := supervise(t, unit)
			s.edit(strings.Replace(goodSettings, "listen", "lisen", 1))
			s.failsToStart()
			s.edit(goodSettings)
			s.starts("again after its settings were mended")
		})
	}
}

// The example of the page runs as both services, its files beside it: only the ports are others.
func TestTheExampleConfigurationRuns(t *testing.T) {
	t.Parallel()
	settings := ""
	for _, e := range harness.ExamplesOf("configuration") {
		if e.Language == "yaml" {
			settings = e.Code
		}
	}
	for _, role := range []string{"server", "sidecar"} {
		own := strings.NewReplacer("sidecar:\n", "sidecar:\n  listen: 127.0.0.1:0\n  ops-listen: 127.0.0.1:0\n",
			"server:\n", "server:\n  listen: 127.0.0.1:0\n  ops-listen: 127.0.0.1:0\n")
		s := supervise(t, unitOf(t, role))
		s.edit(own.Replace(settings))
		s.failsToStart() // its secrets are not there yet
		for _, name := range []string{"redact-secret", "bootstrap-key"} {
			if err := os.WriteFile(filepath.Join(s.dir, name), []byte(strings.Repeat("k", 40)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.starts(role + " with the example of the page")
	}
}

// The control: systemd gives up on the same unit without these settings.
func TestAServiceWithoutRestartSettingsIsGivenUp(t *testing.T) {
	t.Parallel()
	unit := unitOf(t, "server")
	unit = strings.NewReplacer("StartLimitIntervalSec=0\n", "", "RestartSec=2s\n", "").Replace(unit)
	s := supervise(t, unit)
	for range 10 {
		if _, allowed := s.start(); !allowed {
			return
		}
	}
	t.Error("ten starts in a row are allowed")
}
