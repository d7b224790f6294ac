package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
)

// upRoles are the roles that `up` runs, each in a folder of this name below its own.
var upRoles = []string{"server", "sidecar"}

// isUpFolder reports whether a folder is that of `up`. A role's own data folder never is, whatever else it holds.
func isUpFolder(data string) bool {
	for _, own := range []string{ops.SocketName, filepath.Base(archiveDir("")), filepath.Base(spoolDir(""))} {
		if exists(filepath.Join(data, own)) {
			return false
		}
	}
	for _, role := range upRoles {
		if exists(filepath.Join(data, role)) {
			return true
		}
	}
	return false
}

// roleFolder is the data folder of a role: the one given, or that role's within the folder of `up`.
func roleFolder(data, role string) (string, error) {
	if !isUpFolder(data) {
		return data, nil
	}
	folder := filepath.Join(data, role)
	if !exists(folder) {
		return "", fmt.Errorf("%s has no folder %s: give the data folder of a %s", data, role, role)
	}
	return folder, nil
}

// roleData is roleFolder for --data.
func roleData(c *cli.Context, role string) (string, error) {
	data, err := need(c, "data")
	if err != nil {
		return "", err
	}
	if data, err = roleFolder(data, role); err != nil {
		return "", usagef(c, "--data: %v", err)
	}
	return data, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
