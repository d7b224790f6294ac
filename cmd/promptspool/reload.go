package main

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/metrics"
)

// filesEvery is how often files with secrets and certificates are looked at. Kubernetes brings a rotated secret within about a minute.
const filesEvery = 10 * time.Second

// reloadable are the settings that a running process takes over; for the others it says that it needs a restart. What the files
// behind *-file hold is taken over as well.
var reloadable = []string{"log-level", "key-calls-max", "key-bytes-max", "redact", "redact-secret", "bootstrap-key", "api-key", "local-key", "provider-base-url"}

// reloader takes over what changed in a process's configuration, all of it or nothing: on SIGHUP, and when a file with
// a secret or a certificate has another content.
type reloader struct {
	args     []string                                    // the command line
	prepare  func(*cli.Context) (commit func(), _ error) // reads settings; commit puts them in force, and cannot fail
	metrics  *metrics.Metrics
	logger   *slog.Logger
	mu       sync.Mutex
	settings []shownSetting // in force; under mu
	files    [32]byte       // digest of the files that were looked at last; of run alone
}

// newReloader remembers what c's settings are.
func newReloader(c *cli.Context) *reloader {
	args, _ := c.App.Metadata[argsKey].([]string)
	r := &reloader{args: args, settings: settingsOf(c)}
	r.files = r.digest()
	return r
}

// inForce are the settings that the process runs with.
func (r *reloader) inForce() []shownSetting {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.settings)
}

// run reloads until ctx ends.
func (r *reloader) run(ctx context.Context) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	r.metrics.ConfigGeneration.Set(1)
	r.metrics.ConfigLoaded.SetToCurrentTime()
	tick := time.NewTicker(filesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
			r.reload("SIGHUP")
		case <-tick.C:
			if d := r.digest(); d != r.files {
				r.files = d // a file with a fault is told once
				r.reload("a file changed")
			}
		}
	}
}

// reload reads everything anew. With a fault anywhere, all stays as it was.
func (r *reloader) reload(why string) {
	err := evaluate(r.args, nil, func(next *cli.Context) error {
		commit, err := r.prepare(next)
		if err != nil {
			return err
		}
		settings := settingsOf(next)
		r.mu.Lock()
		later := needRestart(r.settings, settings)
		r.settings = settings
		r.mu.Unlock()
		commit()
		if len(later) > 0 {
			r.logger.Warn("some settings changed that count after a restart only", "settings", strings.Join(later, ", "))
		}
		return nil
	})
	if err != nil {
		r.metrics.ConfigFailures.Inc()
		r.logger.Error("the configuration was not taken over; all stays as it was", "why", why, "error", err)
		return
	}
	r.files = r.digest()
	r.metrics.ConfigGeneration.Inc()
	r.metrics.ConfigLoaded.SetToCurrentTime()
	r.logger.Info("the configuration was taken over", "why", why)
}

// needRestart names the settings whose values differ and that are not reloadable.
func needRestart(before, after []shownSetting) (names []string) {
	for i, s := range after {
		if i < len(before) && s.Setting == before[i].Setting && s.Value != before[i].Value && !slices.Contains(reloadable, strings.TrimSuffix(s.Setting, "-file")) {
			names = append(names, s.Setting)
		}
	}
	return names
}

// digest is of all files with secrets and certificates, so that a change shows, however it was made.
func (r *reloader) digest() (sum [32]byte) {
	h := sha256.New()
	for _, s := range r.inForce() {
		if !strings.HasSuffix(s.Setting, "-file") || s.Value == "" {
			continue
		}
		content, err := os.ReadFile(s.Value)
		if err != nil {
			content = []byte(err.Error())
		}
		one := sha256.Sum256(content)
		h.Write(one[:])
	}
	h.Sum(sum[:0])
	return sum
}
