package datafolder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"promptspool/api/ops"
	"promptspool/spool/disk"
)

// UpRoles are the roles that `up` runs, each in a folder of this name within its own.
var UpRoles = []string{"server", "sidecar"}

// Archive returns the folder of the Badger archive in a server's data folder.
func Archive(data string) string { return filepath.Join(data, "archive") }

// Spool returns the folder of the spool in a sidecar's data folder.
func Spool(data string) string { return filepath.Join(data, "spool") }

// IsUp reports whether a folder is that of `up`. A role's own data folder never is, whatever else it holds.
func IsUp(data string) bool {
	// A role's folder may hold a folder called server: what is its own decides.
	own := []string{filepath.Join(data, ops.SocketName), Archive(data), Spool(data)}
	return !slices.ContainsFunc(own, exists) &&
		slices.ContainsFunc(UpRoles, func(role string) bool { return exists(filepath.Join(data, role)) })
}

// OfRole returns the data folder of a role: the one given, or that role's within the folder of `up`.
func OfRole(data, role string) (string, error) {
	if !IsUp(data) {
		return data, nil
	}

	folder := filepath.Join(data, role)
	if !exists(folder) {
		return "", fmt.Errorf("%s has no folder %s: give the data folder of a %s", data, role, role)
	}
	return folder, nil
}

// ServerOf returns the URL of the server of `up` on a data folder, and the key that is kept there.
//
// The URL is valid without a key as well.
func ServerOf(ctx context.Context, data string) (url, key string, err error) {
	var at struct{ URL string }
	if err := ops.Control(ctx, filepath.Join(data, "server"), "GET", "/address", nil, &at); err != nil {
		return "", "", errors.New("its server does not answer; start `promptspool up` there")
	}

	path := filepath.Join(data, "key")
	text, err := os.ReadFile(path)
	if info, _ := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode()&0o077 != 0 {
		return at.URL, "", fmt.Errorf("other users can open %s; make it yours alone with chmod 600", path)
	}
	return at.URL, strings.TrimSpace(string(text)), err
}

// Open creates a role's data folder if it does not exist, and locks it.
//
// The lock keeps a process of the other role from taking the control socket. The kernel
// releases it when the process ends.
func Open(data string) (*os.File, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("the data folder: %w", err)
	}
	lock, err := disk.LockFolder(data)
	if err == nil {
		return lock, nil
	}

	if errors.Is(err, disk.ErrLocked) {
		err = fmt.Errorf("it is in use by another process (%s); stop that one first, or choose another folder",
			holderOf(data))
	}
	return nil, fmt.Errorf("the data folder %s: %w", data, err)
}

// holderOf describes the process that has a data folder open.
func holderOf(data string) string {
	for _, dir := range []string{Archive(data), Spool(data)} {
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
