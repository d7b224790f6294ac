package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/words"
	"promptspool/metrics"
)

// The known facts about the settings' values are kept with the app that runs, which is
// made again for each evaluation.
const (
	originsKey   = "origins"    // map[string]string: where the value of each setting was set
	rulesKey     = "rules"      // []placedRule
	argsKey      = "args"       // []string: the command line
	fileFirstKey = "file first" // present: the file comes before the command line and variables
)

// AppMaker makes the command table of the program, for an evaluation.
type AppMaker func(stdout, stderr io.Writer) *cli.App

// Apply gives the settings that neither the command line nor a variable sets the values of the configuration file.
// It keeps where each was set, also for a command that takes no file.
func Apply(c *cli.Context) error {
	origins := map[string]string{}
	c.App.Metadata[originsKey] = origins
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; name != "help" && c.IsSet(name) {
			origins[name] = originOf(c, f)
		}
	}

	path := c.String("config")
	if path == "" {
		return nil
	}
	file, err := ReadFile(c.App, path)
	if err != nil {
		return UsageError{CommandName(c) + " ", err.Error()}
	}

	// The section of the other role is checked as well, and else ignored.
	section := file.Sections[c.Command.Name]
	c.App.Metadata[rulesKey] = section.redact
	_, fileFirst := c.App.Metadata[fileFirstKey]
	for _, s := range section.settings {
		// An empty variable is often set by a template that means nothing by it: the file
		// counts.
		if origins[s.name] != "" && !fileFirst && hasValue(c, s.name) {
			continue
		}

		origins[s.name] = fmt.Sprintf("%s:%d", path, s.line)
		for _, value := range s.values {
			if err := c.Set(s.name, besideFile(path, s.name, value)); err != nil {
				return Usagef(c, "%s: %s: %q is not true or false", origins[s.name], s.name, value)
			}
		}
	}
	return nil
}

// besideFile resolves the name of a file in a configuration file: a relative one is beside that file, wherever the
// process was started. Other settings are returned as they are.
func besideFile(path, name, value string) string {
	isFile := strings.HasSuffix(name, "-file") || name == "prices"
	if !isFile || value == "" || filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(filepath.Dir(path), value)
}

// hasValue reports whether a setting that is set has a value: a variable that is set to nothing means the default.
func hasValue(c *cli.Context, name string) bool {
	return c.String(name) != "" || c.Bool(name) || len(Read(c).List(name)) > 0
}

// originOf returns the flag or the variable by which a setting was set.
//
// The library does not tell which. Where both have the same value it does not matter.
func originOf(c *cli.Context, f cli.Flag) string {
	name, variable := f.Names()[0], f.(cli.DocGenerationFlag).GetEnvVars()[0]
	// A flag goes before its variable: the variable's own value shows that it counted.
	value, set := os.LookupEnv(variable)
	if set && (c.String(name) == value || f.IsSet() && c.String(name) == "") {
		return variable
	}
	return "--" + name
}

// Misspelt returns the variables that no command reads, each with one of this command that is close to it.
//
// Others are left alone: for a service of that name, Kubernetes sets PROMPTSPOOL_SERVICE_HOST.
func (r *Reader) Misspelt() map[string]string {
	const prefix = "PROMPTSPOOL_"
	var own []string
	for _, f := range r.c.Command.Flags {
		for _, variable := range f.(cli.DocGenerationFlag).GetEnvVars() {
			own = append(own, strings.TrimPrefix(variable, prefix))
		}
	}

	meant := map[string]string{}
	for _, line := range os.Environ() {
		variable, _, _ := strings.Cut(line, "=")
		name, ours := strings.CutPrefix(variable, prefix)
		if near := words.Closest(name, own); ours && len(near) > 0 && !isRead(r.c.App.Commands, variable) {
			meant[variable] = prefix + near[0]
		}
	}
	return meant
}

// isRead reports whether one of some commands reads a variable.
func isRead(commands []*cli.Command, variable string) bool {
	return slices.ContainsFunc(commands, func(c *cli.Command) bool {
		return isRead(c.Subcommands, variable) || slices.ContainsFunc(c.Flags, func(f cli.Flag) bool {
			return slices.Contains(f.(cli.DocGenerationFlag).GetEnvVars(), variable)
		})
	})
}

// origin is where a setting was set: --data, PROMPTSPOOL_DATA or FILE:LINE; "" when it has its default.
func origin(c *cli.Context, name string) string {
	origins, _ := c.App.Metadata[originsKey].(map[string]string)
	return origins[name]
}

// Remember keeps the command line that an app is about to run, so that it can be evaluated again.
func Remember(app *cli.App, args []string) { app.Metadata[argsKey] = args }

// Evaluate reads a command line again, with its configuration file as it is now.
//
// It calls see where the command would begin to run. Everything happens in a new app, so a file with a fault changes
// nothing.
func Evaluate(newApp AppMaker, args []string, see func(*cli.Context) error) error {
	return evaluateWith(newApp, args, map[string]any{}, see)
}

// EvaluateFile is evaluate for a role's section of a configuration file alone, as if nothing came before the file.
func EvaluateFile(newApp AppMaker, role, path string, see func(*cli.Context) error) error {
	args := []string{"promptspool", role, "--config", path}
	return evaluateWith(newApp, args, map[string]any{fileFirstKey: true}, see)
}

func evaluateWith(newApp AppMaker, args []string, metadata map[string]any, see func(*cli.Context) error) error {
	// It prints into nothing: a reload must not write to the output of the process.
	app := newApp(&bytes.Buffer{}, &bytes.Buffer{})
	for key, value := range metadata {
		app.Metadata[key] = value
	}
	Remember(app, args)
	for _, command := range app.Commands {
		if command.Name == args[1] {
			command.Action = see
		}
	}
	return app.Run(Permute(app, args))
}

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
