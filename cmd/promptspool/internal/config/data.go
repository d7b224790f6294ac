package config

import (
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/datafolder"
)

// ServerDataFlag names the data folder of a server.
func ServerDataFlag() cli.Flag {
	return TextFlag("data", "", "the server's data `folder`, or that of up"+UpDataHere)
}

// The data folders of `up` and `up --demo`, which other commands find where they are started.
const (
	UpData   = ".promptspool"
	DemoData = ".promptspool-demo"
)

// UpDataHere ends the help of --data in commands that find these folders.
const UpDataHere = " (default: " + UpData + " or " + DemoData + ", if it is here)"

// DataHere returns --data, or the data folder of an `up` that was started here; "" for neither.
func DataHere(c *cli.Context) string {
	data := c.String("data")
	for _, here := range []string{UpData, DemoData} {
		if data == "" && datafolder.IsUp(here) {
			data = here
		}
	}
	return data
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
