package config

import (
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/datafolder"
)

// ServerDataFlag names the data folder of a server.
func ServerDataFlag() cli.Flag {
	return TextFlag("data", "", "the server's data `folder`, or that of up")
}

// RoleData returns the data folder of a role: --data, or the role's folder within that of `up`.
func RoleData(c *cli.Context, role string) (string, error) {
	r := Read(c)
	data := r.Required("data")
	if err := r.Err(); err != nil {
		return "", err
	}

	folder, err := datafolder.OfRole(data, role)
	if err != nil {
		return "", Usagef(c, "--data: %v", err)
	}
	return folder, nil
}
