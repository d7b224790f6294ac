package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

const (
	serverListen     = "127.0.0.1:8788"
	serverOpsListen  = "127.0.0.1:9788"
	sidecarListen    = "127.0.0.1:8787"
	sidecarOpsListen = "127.0.0.1:9787"
)

func bootstrapFlag() cli.Flag {
	return stringFlag("bootstrap-key", "", "make the account 'default' with exactly this `key`, of scope full; at least 32 characters. Give it by its variable: others can read a command line")
}

func serverCommand() *cli.Command {
	flags := []cli.Flag{stringFlag("data", "", "the `folder` of the archive; made when absent"), nameFlag(), bootstrapFlag(), signUpFlag(), pricesFlag()}
	flags = append(flags, listenFlags(serverListen, serverOpsListen)...)
	return &cli.Command{
		Name:  "server",
		Usage: "keep records, templates and keys",
		Flags: append(flags, logFlags("info")...),
		Action: func(c *cli.Context) error {
			data, err := need(c, "data")
			if err != nil {
				return err
			}
			name, err := nameOf(c)
			if err != nil {
				return err
			}
			log, err := logger(c)
			if err != nil {
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
			return server(c.Context, serverConfig{
				data: data, listen: text(c, "listen"), opsListen: text(c, "ops-listen"), name: name, prices: table,
				bootstrapKey: wire.Secret(text(c, "bootstrap-key")), logger: log,
				signUp: signUp, ready: func(addr string, setup wire.Secret) { welcome(c.App.Writer, addr, setup) },
			})
		},
	}
}

func signUpFlag() cli.Flag {
	return stringFlag("signup", string(wire.SignUpInvite), "who may sign up at the dashboard: `invite` (whom an owner invites), open (everybody, each into an account of their own) or closed")
}

func signUpOf(c *cli.Context) (wire.SignUp, error) {
	switch s := wire.SignUp(text(c, "signup")); s {
	case wire.SignUpInvite, wire.SignUpOpen, wire.SignUpClosed:
		return s, nil
	default:
		return "", usagef(c, "--signup is %q; it must be invite, open or closed", s)
	}
}

// welcome tells whoever started a fresh server how to sign up. It is printed, not logged: logs are kept and read by others.
func welcome(w io.Writer, addr string, setup wire.Secret) {
	if setup != "" {
		_, _ = fmt.Fprintf(w, "Nobody has signed up yet. Open http://%s/sign-up, with the setup code %s\n", addr, string(setup))
	}
}
