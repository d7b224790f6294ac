package config

import (
	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
)

// Where the two roles listen by default.
const (
	ServerListen     = "127.0.0.1:8788"
	ServerOpsListen  = "127.0.0.1:9788"
	SidecarListen    = "127.0.0.1:8787"
	SidecarOpsListen = "127.0.0.1:9787"
)

// RemoteFlags say which server a command calls, with which key, and how it prints the answer.
func RemoteFlags() []cli.Flag { return append(ServerFlags(), ShowingFlags()...) }

// ServerFlags say which server a command calls, and with which key.
func ServerFlags() []cli.Flag {
	own := []cli.Flag{
		TextFlag("url", "http://"+ServerListen, "the `URL` of the server, or of a sidecar"),
		TextFlag("key", "", "a `key` of scope full, as `promptspool keys create --scope full` makes; "+
			"better given by its variable"),
	}
	return append(own, TrustFlags("url")...)
}

// Remote returns the client that ServerFlags describe, unless a fault was noted before. The caller closes it.
func (r *Reader) Remote() (*client.Client, wire.Identity) {
	if !r.Sound() {
		return nil, wire.Identity{}
	}

	// Only after all else was sound: a wrong flag is to be reported before a missing key.
	key, trust := r.Required("key"), r.Trust("url")
	if !r.Sound() {
		return nil, wire.Identity{}
	}

	cl, err := client.New(client.Config{URL: r.Text("url"), Version: r.c.App.Version, TLS: trust})
	if err != nil {
		r.Note(Usagef(r.c, "--url (or %s): %v", Variables("url")[0], err))
		return nil, wire.Identity{}
	}
	return cl, wire.Identity{Key: wire.Secret(key)}
}

// Remote is Reader.Remote for a command without settings of its own. The caller closes the client.
func Remote(c *cli.Context) (*client.Client, wire.Identity, error) {
	r := Read(c)
	cl, id := r.Remote()
	return cl, id, r.Err()
}
