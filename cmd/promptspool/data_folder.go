package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

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

// openData makes a role's data folder if it is absent and locks it, so that no process of the other
// role takes its control socket. The kernel releases the lock when the process ends.
func openData(data string) (*os.File, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("the data folder: %w", err)
	}
	folder, err := os.Open(data)
	if err != nil {
		return nil, fmt.Errorf("the data folder: %w", err)
	}
	err = unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return folder, nil
	}

	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("it is in use by another process (%s); stop that one first, or choose another folder",
			holderOf(data))
	}
	return nil, errors.Join(fmt.Errorf("the data folder %s: %w", data, err), folder.Close())
}

// holderOf describes the process that has a data folder open.
func holderOf(data string) string {
	for _, dir := range []string{archiveDir(data), spoolDir(data)} {
		if pid, err := os.ReadFile(filepath.Join(dir, "LOCK")); err == nil && strings.TrimSpace(string(pid)) != "" {
			return "pid " + strings.TrimSpace(string(pid))
		}
	}

	return "its pid is unknown"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
