package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"promptspool/api/wire"
)

// upCommand runs both roles in one process, to try them.
func upCommand() *cli.Command {
	flags := []cli.Flag{stringFlag("data", ".promptspool", "the `folder` of everything; made when absent"), nameFlag(), signUpFlag(), pricesFlag()}
	flags = append(flags, bootstrapFlags()...)
	for _, l := range []struct{ name, value, usage string }{
		{"listen", sidecarListen, "where the sidecar's API listens: `host:port` or unix:/path"},
		{"ops-listen", sidecarOpsListen, "where the sidecar's metrics and probes are served: `host:port`"},
		{"server-listen", serverListen, "where the server's API listens: `host:port` or unix:/path"},
		{"server-ops-listen", serverOpsListen, "where the server's metrics and probes are served: `host:port`"},
	} {
		flags = append(flags, stringFlag(l.name, l.value, l.usage))
	}
	flags = append(flags, switchFlag("listen-public", "let the listeners be reached from other machines, not by loopback only"))
	flags = append(flags, spoolFlags()...)
	return &cli.Command{
		Name:   "up",
		Usage:  "run a server and a sidecar in one process, to try them",
		Flags:  append(flags, logFlags("warn")...),
		Action: up,
	}
}

// up starts the server, then the sidecar, and stops them the other way round.
func up(c *cli.Context) error {
	v := &values{c: c}
	config := sidecarConfigOf(v)
	config.listen, config.opsListen = v.address("listen"), v.address("ops-listen")
	serverListen, serverOpsListen := v.address("server-listen"), v.address("server-ops-listen")
	key := v.secret("bootstrap-key")
	if err := v.err(); err != nil {
		return err
	}
	signUp, err := signUpOf(c)
	if err != nil {
		return err
	}
	table, err := pricesOf(c)
	if err != nil {
		return err
	}
	data := text(c, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	if key == "" {
		var err error
		if key, err = keyFile(filepath.Join(data, "key")); err != nil {
			return err
		}
	}
	serverSettings, sidecarSettings := upSettings(c, "server"), upSettings(c, "sidecar")

	group, running := errgroup.WithContext(c.Context) // ends when either role ends
	serverLife, stopServer := context.WithCancel(context.Background())
	defer stopServer()
	serverUp := make(chan serverAt, 1)
	group.Go(func() error {
		return server(serverLife, serverConfig{
			data: filepath.Join(data, "server"), listen: serverListen, opsListen: serverOpsListen,
			name: config.name, bootstrapKey: key, signUp: signUp, prices: table, logger: config.logger.With("role", "server"),
			settings: serverSettings,
			ready:    func(addr string, setup wire.Secret) { serverUp <- serverAt{addr, setup} },
		})
	})
	group.Go(func() error {
		defer stopServer()
		select {
		case <-running.Done():
			return nil
		case at := <-serverUp:
			config.data = filepath.Join(data, "sidecar")
			config.upstream, config.logger = "http://"+at.addr, config.logger.With("role", "sidecar")
			config.settings = append(sidecarSettings, shownSetting{"upstream", config.upstream, "up"})
			config.ready = func(sidecarAddr string) {
				banner(c.App.Writer, data, key, sidecarAddr, at, config.opsListen.at, serverOpsListen.at)
			}
			return sidecar(running, config)
		}
	})
	return group.Wait()
}

// upSettings are the settings of `up` that are one role's, under the names of that role's flags.
func upSettings(c *cli.Context, role string) (shown fixedSettings) {
	flags := roleFlags(role)
	for _, s := range settingsOf(c) {
		own := strings.HasPrefix(s.Setting, "server-")
		switch {
		case role == "server" && own:
			s.Setting = strings.TrimPrefix(s.Setting, "server-")
		case role == "server" && (s.Setting == "listen" || s.Setting == "ops-listen"):
			continue
		case s.Setting == "data":
			s.Value = filepath.Join(s.Value, role)
		}
		if _, known := flags[s.Setting]; known {
			shown = append(shown, s)
		}
	}
	return shown
}

// serverAt is a server that is up: its address, and the code with which the first person signs up.
type serverAt struct {
	addr  string
	setup wire.Secret
}

// keyFile reads the key that the app may use from a file (0600), which it makes with a new one when absent. It is the app's copy:
// the server keeps a hash.
func keyFile(path string) (wire.Secret, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return wire.Secret(strings.TrimSpace(string(text))), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	key := "ps_" + base64.RawURLEncoding.EncodeToString(random)
	return wire.Secret(key), os.WriteFile(path, []byte(key+"\n"), 0o600)
}

var bannerText = template.Must(template.New("").Parse(`promptspool {{.Version}} is up. Data is in {{.Data}}; stop with Ctrl-C.

  sidecar, for your app   http://{{.Sidecar}}   (operations on http://{{.SidecarOps}})
  server                  http://{{.Server}}   (operations on http://{{.ServerOps}})
  dashboard               http://{{.Server}}/{{if .Setup}}sign-up   (setup code {{.Setup}}){{end}}
  key                     {{.Key}}

Paste this into another terminal to log a call, and to find it on the server:

  export PROMPTSPOOL_KEY={{.Key}}
  curl -s http://{{.Sidecar}}/rest/track-request -H 'Content-Type: application/json' -d '{
    "api_key": "'$PROMPTSPOOL_KEY'", "function_name": "openai.ChatCompletion.create", "tags": ["hello"],
    "kwargs": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Say hello."}]},
    "request_response": {"model": "gpt-4o-mini", "choices": [{"index": 0, "finish_reason": "stop",
      "message": {"role": "assistant", "content": "Hello!"}}], "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
    "request_start_time": '$(date +%s.%N)', "request_end_time": '$(date +%s.%N)'}'
  curl -s http://{{.Server}}/api/public/v2/requests/search -H "X-API-KEY: $PROMPTSPOOL_KEY" -d '{}'

`))

func banner(w io.Writer, data string, key wire.Secret, sidecar string, server serverAt, sidecarOps, serverOps string) {
	_ = bannerText.Execute(w, map[string]string{
		"Version": version, "Data": data, "Key": string(key),
		"Sidecar": sidecar, "Server": server.addr, "Setup": string(server.setup), "SidecarOps": sidecarOps, "ServerOps": serverOps,
	})
}
