package dashboard

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"promptspool/api/filterline"
)

// The line is completed with fields, with keys that exist, and with values that exist.
func TestALineIsCompleted(t *testing.T) {
	s := openSite(t)
	for line, want := range map[string]string{
		"stat":           "status:",
		"status:e":       "ERROR",
		"status:*e":      "ERROR",
		"status:error":   "ERROR",
		"x -is:(json or": "",
		"since:last":     "last-week last-month",
		`"a text`:        "",
		"latency:":       "",

		strings.Repeat("x ", filterline.RunesMax/2) + "stat": "", // too long for a line
	} {
		var got struct {
			Kept   string
			Offers []struct{ Text string }
			Half   bool
		}
		body := s.call("ann@example.com", "GET", "/suggestions?line="+url.QueryEscape(line), nil).Body.Bytes()
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		var texts []string
		for _, o := range got.Offers {
			texts = append(texts, o.Text)
		}
		if half := strings.HasSuffix(line, "status:e") || line == "since:last"; got.Half != half {
			t.Errorf("%s: half is %t", line, got.Half)
		}
		if strings.Join(texts, " ") != want || !strings.HasPrefix(line, got.Kept) {
			t.Errorf("%s is completed by %q behind %q, want %s", line, texts, got.Kept, want)
		}
	}
}
