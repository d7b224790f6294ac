package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"promptspool/api/auth"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/demo"
	"promptspool/metrics"
)

// upCommand runs both roles in one process, to try them.
func upCommand() *cli.Command {
	flags := []cli.Flag{
		config.TextFlag("data", config.UpData, "data `folder` (created if missing)"),
		config.SwitchFlag("demo", "fill a new data folder ("+config.DemoData+" unless --data names one) "+
			"with 30 days of a support bot"),
		signUpFlag(),
		pricesFlag(),
	}
	listeners := config.Group("Listeners",
		config.TextFlag("listen", config.SidecarListen, "where the sidecar's API listens: `host:port` or unix:/path"),
		config.TextFlag("ops-listen", config.SidecarOpsListen,
			"where the sidecar's metrics and probes are served: `host:port`"),
		config.TextFlag("server-listen", config.ServerListen, "where the server's API listens: `host:port`"),
		config.TextFlag("server-ops-listen", config.ServerOpsListen,
			"where the server's metrics and probes are served: `host:port`"),
		config.ListenPublicFlag(),
	)

	c := config.Command("up", "run a server and a sidecar in one process, to try them", up,
		flags, bootstrapFlags(), listeners, publicFlags(), roleFlags(), spoolFlags(), config.LogFlags("warn"))
	c.Before = config.Apply
	return c
}

// up starts the server, then the sidecar, and stops them in the opposite order.
func up(c *cli.Context) error {
	if c.Bool("demo") {
		if err := newDemo(c); err != nil {
			return err
		}
	}
	data := config.Read(c).Text("data")
	serverSide, sidecarSide, err := upConfigs(c, data)
	if err != nil {
		return err
	}

	// The file is the app's copy of the key.
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	if serverSide.bootstrapKey == "" {
		key, err := keyFile(filepath.Join(data, "key"))
		if err != nil {
			return err
		}
		serverSide.bootstrapKey = key
	}

	serverSide.printedKey, serverSide.sidecarURL = serverSide.bootstrapKey, localURL(sidecarSide.listen.At)

	// The group's context ends when either role ends. The server has its own life: it ends after the sidecar.
	group, running := errgroup.WithContext(c.Context)
	serverLife, stopServer := context.WithCancel(context.Background())
	defer stopServer()

	serverUp := make(chan runningServer, 1)
	serverSide.ready = func(at addresses, setup wire.Secret) { serverUp <- runningServer{at, setup} }
	group.Go(func() error { return server(serverLife, serverSide) })
	group.Go(func() error {
		defer stopServer()
		select {
		case <-running.Done():
			return nil
		case at := <-serverUp:
			return sidecarOf(running, c, data, at, serverSide, sidecarSide)
		}
	})
	return group.Wait()
}

// newDemo finds the data folder of a demo, and refuses one with data in it.
func newDemo(c *cli.Context) error {
	if !c.IsSet("data") {
		// A text is always accepted.
		_ = c.Set("data", config.DemoData)
	}
	data := c.String("data")
	if _, err := os.Stat(filepath.Join(data, "server")); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--demo fills a new data folder only, and %s has data. To start that again, run: "+
			"promptspool up --data %s", data, data)
	}
	return nil
}

// upConfigs reads the settings of both roles.
func upConfigs(c *cli.Context, data string) (serverConfig, sidecarConfig, error) {
	r := config.Read(c)
	sidecarSide := sidecarConfigOf(r)
	sidecarSide.data = filepath.Join(data, "sidecar")
	sidecarSide.source = config.FixedSource(config.SettingsOf(c))

	serverSide := serverConfig{
		roleConfig:   sidecarSide.roleConfig,
		public:       publicAddressOf(r),
		bootstrapKey: r.Secret("bootstrap-key"),
		signIn:       signIn{people: auth.PeopleConfig{SignUp: signUpOf(r)}},
		prices:       pricesOf(r),
		// To try a target on this machine.
		webhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	}
	serverSide.data = filepath.Join(data, "server")
	// Without keys it cannot fail.
	serverSide.usage, _ = metrics.NewUsage(nil, metrics.UsageSeriesDefault)
	serverSide.listen, serverSide.opsListen = r.Address("server-listen"), r.Address("server-ops-listen")
	// Apps send to the sidecar.
	serverSide.otlpListen = config.Address{}
	if err := r.Err(); err != nil {
		return serverConfig{}, sidecarConfig{}, err
	}

	// Both write to one stderr.
	serverSide.logger = sidecarSide.logger.With("role", "server")
	sidecarSide.logger = sidecarSide.logger.With("role", "sidecar")
	return serverSide, sidecarSide, nil
}

// sidecarOf runs the sidecar of a server that is up.
func sidecarOf(
	ctx context.Context, c *cli.Context, data string,
	central runningServer, serverSide serverConfig, role sidecarConfig,
) error {
	// The real address: a port of 0 is known only once the server is up.
	role.upstream = "http://" + central.at.api
	role.introduces = serverSide.bootstrapKey

	if c.Bool("demo") {
		_, _ = fmt.Fprintln(c.App.ErrWriter, "Filling the demo takes a few seconds.")
		if err := demo.Fill(ctx, role.upstream, serverSide.bootstrapKey, time.Now()); err != nil {
			return fmt.Errorf("the demo is incomplete, so delete %s: %w", data, err)
		}
	}
	role.ready = func(at addresses) {
		banner(c.App.Writer, map[string]string{
			"Version":    version,
			"Data":       data,
			"Key":        string(serverSide.bootstrapKey),
			"Sidecar":    at.api,
			"SidecarOps": at.ops,
			"OTLP":       at.otlp,
			"Server":     central.at.api,
			"ServerOps":  central.at.ops,
			"Dashboard":  serverSide.public.or("http://" + central.at.api),
			"Setup":      string(central.setup),
		})
	}
	return sidecar(ctx, role)
}

// localURL returns the URL at which apps on this machine call a listener.
//
// It is "" for a unix socket, and for a port that the system is going to choose.
func localURL(at string) string {
	host, port, _ := net.SplitHostPort(at)
	if n, _ := strconv.Atoi(port); n == 0 {
		return ""
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// runningServer is a server that is up: its addresses, and the code with which the first person signs up.
type runningServer struct {
	at    addresses
	setup wire.Secret
}

// keyFile reads the key that the app may use from a file (0600), or makes the file with a new key.
//
// It is the app's copy: the server keeps a hash.
func keyFile(path string) (wire.Secret, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return wire.Secret(strings.TrimSpace(string(text))), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}

	random := make([]byte, 32)
	// Never fails.
	_, _ = rand.Read(random)
	key := "ps_" + base64.RawURLEncoding.EncodeToString(random)
	return wire.Secret(key), os.WriteFile(path, []byte(key+"\n"), 0o600)
}

var bannerText = template.Must(template.New("").Parse(
	`promptspool {{.Version}} is up. Data is in {{.Data}}; stop with Ctrl-C.

  sidecar, for your app   http://{{.Sidecar}}   (operations on http://{{.SidecarOps}}){{if .OTLP}}
  for OpenTelemetry       http://{{.OTLP}}{{end}}
  server                  http://{{.Server}}   (operations on http://{{.ServerOps}})
  dashboard               {{.Dashboard}}/{{if .Setup}}sign-up?code={{.Setup}}{{end}}
  key                     {{.Key}}

Paste this into another terminal to log a call, and to find it on the server:

  export PROMPTSPOOL_KEY={{.Key}}
  curl -s http://{{.Sidecar}}/rest/track-request -H 'Content-Type: application/json' -d '{
    "api_key": "'$PROMPTSPOOL_KEY'", "function_name": "openai.ChatCompletion.create", "tags": ["hello"],
    "kwargs": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Say hello."}]},
    "request_response": {"model": "gpt-4o-mini", "choices": [{"index": 0, "finish_reason": "stop",
      "message": {"role": "assistant", "content": "Hello!"}}], "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
    "request_start_time": '$(date +%s)', "request_end_time": '$(date +%s)'}'
  curl -s http://{{.Server}}/api/public/v2/requests/search -H "X-API-KEY: $PROMPTSPOOL_KEY" -d '{}'

`))

// banner tells the person who started `up` what runs where, and what to try.
func banner(w io.Writer, values map[string]string) { _ = bannerText.Execute(w, values) }
