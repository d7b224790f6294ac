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
	// Most systems link to a file that is named as the zone is.
	link, _ := filepath.EvalSymlinks("/etc/localtime")
	_, linked, _ := strings.Cut(filepath.ToSlash(link), "zoneinfo/")

	now := time.Now()
	for _, name := range []string{strings.TrimPrefix(os.Getenv("TZ"), ":"), linked} {
		zone, err := time.LoadLocation(name)
		if err != nil || name == "" || name == "Local" {
			continue
		}
		// Only if its clocks show the same, in summer and winter.
		same := true
		for _, t := range []time.Time{now, now.AddDate(0, 6, 0)} {
			_, there := t.In(zone).Zone()
			_, here := t.Local().Zone()
			same = same && there == here
		}
		if same {
			return name
		}
	}

	return now.Format("-07:00")
}
