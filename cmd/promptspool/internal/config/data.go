package config

import (
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/datafolder"
)

// ServerDataFlag names the data folder of a server.
func ServerDataFlag() cli.Flag {
	return TextFlag("data", "", "the server's data `folder`, or that of up; if absent "+UpData+", if up made it here")
}

// UpData is the data folder of `up`, beside which other commands find it.
const UpData = ".promptspool"

// DataHere returns --data, or the data folder of an `up` that was started here; "" for neither.
func DataHere(c *cli.Context) string {
	if data := c.String("data"); data != "" || !datafolder.IsUp(UpData) {
		return data
	}
	return UpData
}

// RoleData returns the data folder of a role: --data, or the role's folder within that of `up`.
func RoleData(c *cli.Context, role string) (string, error) {
	data := DataHere(c)
	if data == "" {
		r := Read(c)
		r.Required("data")
		return "", r.Err()
	}

	folder, err := datafolder.OfRole(data, role)
	if err != nil {
		return "", Usagef(c, "--data: %v", err)
	}
	return folder, nil
}
