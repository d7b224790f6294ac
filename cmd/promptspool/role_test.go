package main

import (
	"cmp"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"promptspool/api"
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

	for _, s := range api.Switches {
		for _, on := range []bool{false, true} {
			value := cmp.Or(s.Off, strconv.FormatBool(on))
			if on {
				value = cmp.Or(s.On, value)
			}
			for command, read := range commands {
				args := strings.Fields("promptspool " + command + " --data=here --" + s.Flag + "=" + value)
				err := config.Evaluate(newApp, args, func(c *cli.Context) error {
					roles, err := read(c)
					for _, role := range roles {
						if *s.Option(&role.options) != on {
							t.Errorf("%q is read as %+v", args, role.options)
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
}
