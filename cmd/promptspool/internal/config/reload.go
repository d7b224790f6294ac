package config

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

// filesEvery is how often files with secrets and certificates are read again.
//
// Kubernetes updates a mounted secret within about a minute.
const filesEvery = 10 * time.Second

// reloadable are the settings that a running process reloads, with the contents of the files after *-file.
//
// The others need a restart, and a reload logs that.
var reloadable = []string{
	"log-level", "key-calls-max", "key-bytes-max", "redact", "redact-secret", "bootstrap-key", "api-key", "local-key",
	"provider-base-url", "oidc-client-secret", "oidc-role", "oidc-groups-claim", "oidc-scope", "oidc-trust-email",
	"oidc-ca", "oidc-cert", "oidc-key",
}

// Source is where the settings of a process come from.
//
// The zero source, and one of fixed settings, cannot be read again.
type Source struct {
	newApp   AppMaker
	args     []string // the command line; nil means the settings are fixed
	settings []ShownSetting
	files    [32]byte // digest of the files that the settings name
}

// SourceOf remembers the command line of c and the settings that it has now.
func SourceOf(newApp AppMaker, c *cli.Context) Source {
	args, _ := c.App.Metadata[argsKey].([]string)
	settings := SettingsOf(c)
	return Source{newApp: newApp, args: args, settings: settings, files: digest(settings)}
}

// FixedSource is the source of settings that do not change.
func FixedSource(settings []ShownSetting) Source { return Source{settings: settings} }

// Prepare reads the settings of a command line and reports every error in them.
//
// commit applies them, and cannot fail.
type Prepare func(*cli.Context) (commit func(), err error)

// reloader applies a changed configuration, all of it or nothing.
//
// It reloads on SIGHUP, and when a file with a secret or a certificate has another content.
type reloader struct {
	Source  // what is in force: settings under mu, files as Run has looked at them last
	prepare Prepare
	metrics *metrics.Metrics
	logger  *slog.Logger

	mu sync.Mutex
}

// NewReloader returns a reloader of a process that runs with the settings of s.
func NewReloader(s Source, m *metrics.Metrics, logger *slog.Logger, prepare Prepare) *reloader {
	return &reloader{Source: s, prepare: prepare, metrics: m, logger: logger}
}

// Settings returns what is in force, for the control socket.
func (r *reloader) Settings() any { return r.inForce() }

// inForce returns the settings that the process runs with.
func (r *reloader) inForce() []ShownSetting {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Clone(r.settings)
}

// Run reloads until ctx ends. Fixed settings stay as they are.
func (r *reloader) Run(ctx context.Context) error {
	if r.args == nil {
		<-ctx.Done()
		return nil
	}

	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	tick := time.NewTicker(filesEvery)
	defer tick.Stop()

	r.metrics.ConfigGeneration.Set(1)
	r.metrics.ConfigLoaded.SetToCurrentTime()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
			r.reload("SIGHUP")
		case <-tick.C:
			if d := digest(r.inForce()); d != r.files {
				// A file with a fault is reported once.
				r.files = d
				r.reload("a file changed")
			}
		}
	}
}

// reload reads the whole configuration again. If anything in it is wrong, all stays as it was.
func (r *reloader) reload(why string) {
	err := Evaluate(r.newApp, r.args, func(next *cli.Context) error {
		commit, err := r.prepare(next)
		if err != nil {
			return err
		}

		settings := SettingsOf(next)
		r.mu.Lock()
		later := needRestart(r.settings, settings)
		r.settings = settings
		r.mu.Unlock()
		commit()

		if len(later) > 0 {
			r.logger.Warn("some settings changed that count after a restart only",
				"settings", strings.Join(later, ", "))
		}
		return nil
	})
	if err != nil {
		r.metrics.ConfigFailures.Inc()
		r.logger.Error("the configuration was not taken over; all stays as it was", "why", why, "error", err)
		return
	}

	r.files = digest(r.inForce())
	r.metrics.ConfigGeneration.Inc()
	r.metrics.ConfigLoaded.SetToCurrentTime()
	r.logger.Info("the configuration was taken over", "why", why)
}

// needRestart names the settings that changed and that are not reloadable.
func needRestart(before, after []ShownSetting) (names []string) {
	// Both are of the same command, so the settings are at the same places. Only the
	// rules of redaction at the end may be more or fewer, and these are reloadable.
	for i, s := range after {
		changed := i < len(before) && s.Setting == before[i].Setting && s.Value != before[i].Value
		if changed && !slices.Contains(reloadable, strings.TrimSuffix(s.Setting, "-file")) {
			names = append(names, s.Setting)
		}
	}
	return names
}

// digest returns a hash of all files with secrets and certificates that settings name.
func digest(settings []ShownSetting) (sum [32]byte) {
	h := sha256.New()
	for _, s := range settings {
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
