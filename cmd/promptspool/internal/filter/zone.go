package filter

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"promptspool/cmd/promptspool/internal/config"
)

// Zone names the zone of a command for the server, which knows nothing of this machine. It is ""
// for UTC.
func Zone(v *config.Reader) string {
	if v.Zone() == time.UTC {
		return ""
	}

	// As Go finds it: by TZ, else by a link that most systems have to a file that is named as the zone is.
	name, set := os.LookupEnv("TZ")
	if !set {
		link, _ := filepath.EvalSymlinks("/etc/localtime")
		_, name, _ = strings.Cut(filepath.ToSlash(link), "zoneinfo/")
	}
	name = strings.TrimPrefix(name, ":")
	if _, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
		return name
	}
	return time.Now().Format("-07:00")
}
