package main

import (
	"cmp"
	"net"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

func TestASwitchReachesBothRoles(t *testing.T) {
	withoutVariables(t)
	commands := map[string]func(*cli.Context) ([]roleConfig, error){
		"server": func(c *cli.Context) ([]roleConfig, error) {
			role, err := serverRoleOf(c)
			return []roleConfig{role.roleConfig}, err
		},
		"sidecar --upstream=http://127.0.0.1:1": func(c *cli.Context) ([]roleConfig, error) {
			role, err := sidecarRoleOf(c)
			return []roleConfig{role.roleConfig}, err
		},
		"up": func(c *cli.Context) ([]roleConfig, error) {
			server, sidecar, err := upConfigs(c, "here")
			return []roleConfig{server.roleConfig, sidecar.roleConfig}, err
		},
	}

	for value, keeps := range map[string]bool{"genai": false, "all": true} {
		for command, read := range commands {
			args := strings.Fields("promptspool " + command + " --data=here --otlp-keep=" + value)
			err := config.Evaluate(newApp, args, func(c *cli.Context) error {
				roles, err := read(c)
				for _, role := range roles {
					if role.keepPlumbing != keeps {
						t.Errorf("%q is read as %v", args, role.keepPlumbing)
					}
				}
				return err
			})
			if err != nil {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
}

// The server and the sidecar of up have the same listeners under flags of different names.
func TestAPortThatIsTakenIsNamedWithItsFlag(t *testing.T) {
	withoutVariables(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()

	flags := []string{"--listen", "--ops-listen", "--server-listen", "--server-ops-listen"}
	for i, flag := range flags {
		args := strings.Fields("promptspool up --data=here")
		for _, other := range flags {
			args = append(args, other+"="+cmp.Or(map[string]string{flag: taken.Addr().String()}[other], "127.0.0.1:0"))
		}
		err := config.Evaluate(newApp, args, func(c *cli.Context) error {
			server, sidecar, err := upConfigs(c, "here")
			if err != nil {
				return err
			}
			p := &process{role: []roleConfig{sidecar.roleConfig, server.roleConfig}[i/2]}
			_, err = p.listen()
			return err
		})
		if err == nil || !strings.HasPrefix(err.Error(), flag+": listen tcp "+taken.Addr().String()) {
			t.Errorf("%s is taken: %v", flag, err)
		}
	}
}
