package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onTerminal runs a command line on a terminal that is so many columns wide, and returns what it shows.
func onTerminal(t *testing.T, width uint16, args ...string) said {
	t.Helper()
	t.Setenv("TERM", "xterm")
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: 40}); err != nil {
		t.Fatal(err)
	}

	shown := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(master) // it ends with an error when the screen is closed
		shown <- strings.ReplaceAll(string(all), "\r\n", "\n")
	}()
	code := run(t.Context(), append([]string{"promptspool"}, args...), screen, screen)
	_ = screen.Close()
	return said{Code: code, Out: <-shown}
}

// onTerminals compares what a command shows on terminals of 80 and of 140 columns, with colours and without, with
// the golden files of a name.
func onTerminals(t *testing.T, name string, args ...string) {
	t.Helper()
	for _, width := range []uint16{80, 140} {
		t.Setenv("NO_COLOR", "")
		coloured := onTerminal(t, width, args...)
		t.Setenv("NO_COLOR", "1")
		plain := onTerminal(t, width, args...)
		for line := range strings.Lines(plain.Out) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > int(width) {
				t.Errorf("%s: a line of %d columns on %d: %s", name, n, width, line)
			}
		}
		golden(t, fmt.Sprintf("%s_%d.txt", name, width), plain.Out+"\n"+strings.ReplaceAll(coloured.Out, "\x1b", "^"))
	}
}

// A list fits the terminal: what it leaves out or shortens is the least important, and times name their zone once.
func TestAListFitsTheTerminal(t *testing.T) {
	withoutVariables(t)
	row := func(id, at, rest string) string {
		return `{"request_id":"` + id + `","list_time":"` + at + `","engine":"claude-sonnet-4-5-20250929",` + rest + `}`
	}
	url, _ := answering(t, `{"success":true,"total":1200,"items":[`+strings.Join([]string{
		row("019abc12-def0-7001-8000-000000000001", "2026-11-26T20:49:05Z", `"status":"SUCCESS","latency":1.25,
			"price":0.0000042,"prompt_name":"support/triage","prompt_version_number":12,
			"input_tokens":1234,"output_tokens":56,
			"input_excerpt":"Where is my parcel? It should have come on Monday.",
			"output_excerpt":"It is on its way to you, and comes tomorrow.",
			"scores":[{"name":"helpful","score":87}],"tags_array":["beta","canary"]`),
		row("019abc12-def0-7002-8000-000000000001", "2026-11-26T20:49:04Z", `"status":"ERROR","latency":12.5,
			"input_excerpt":"Hello","output_excerpt":"Rate limit reached for requests per minute. Try again later."`),
		row("019abc12-0000-7000-8000-000000000001", "2026-07-01T05:47:03Z", `"status":"WARNING","price":0.25,
			"prompt_name":"a/much/longer/name/than/there/is/room/for","prompt_version_number":3`),
	}, ",")+`],"next_num":2,"next_cursor":"MjAy"}`)

	inLosAngeles(t)
	onTerminals(t, "search", "requests", "search", "--url", url, "--key", "k")
}

func TestStatisticsAsATable(t *testing.T) {
	withoutVariables(t)
	totals := func(n, unpriced int) string {
		return fmt.Sprintf(`"requests":%d,"errors":1,"error_rate":0.25,"cost":0.5,"unpriced":%d,"unbilled":1,
			"input_tokens":1000,"output_tokens":500,
			"latency":{"mean":1,"p50":0.5,"p90":1,"p95":1.5,"p99":12},
			"scores":[{"name":"default","count":%d,"mean":70.5,"histogram":[0,0,0,0,1,0,0,2,0,4]}]`, n, unpriced, n-1)
	}
	answer := `{"success":true,"overall":{` + totals(8, 1) + `},
		"stats":[{"date":"2026-03-01","requests":6,"cost":0.1},{"date":"2026-03-04","requests":2,"cost":0.4}],
		"latency":{"p50_latency":{"2026-03-01":0.25,"2026-03-04":2}},
		"items":[{"value":"greet","version":1,` + totals(4, 1) + `,"series":[{"date":"2026-03-01","requests":4}]},
			{"value":"greet","version":null,` + totals(4, 0) + `,"series":[
				{"date":"2026-03-01","requests":2,"cost":0.05,"latency":{"p50":0.2}},
				{"date":"2026-03-02","requests":1,"cost":0.05},
				{"date":"2026-03-04","requests":1,"cost":0.4,"latency":{"p50":0.8}}]}]}`
	url, _ := answering(t, answer)
	got := say(t, "requests", "stats", "--utc", "--url", url, "--key", "k")
	golden(t, "stats.txt", got.Out)
	onTerminals(t, "stats", "requests", "stats", "--utc", "--url", url, "--key", "k")

	got = say(t, "requests", "stats", "--utc", "--bucket", "day", "--url", url, "--key", "k")
	golden(t, "stats_by_day.txt", got.Out)
}
