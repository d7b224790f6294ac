//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"promptspool/api/wire"
)

// saved clicks on a link that saves a file, and returns the name that the server gave it
// and its content.
func (b *browser) saved(selector string) (name string, content []byte) {
	b.t.Helper()

	ctx, cancel := context.WithTimeout(b.ctx, stepTimeMax)
	defer cancel()

	dir, report := b.t.TempDir(), true
	begun := chromedp.Events(ctx, cdpbrowser.DownloadWillBegin)
	progress := chromedp.Events(ctx, cdpbrowser.DownloadProgress)
	allow := chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := chromedp.Call(ctx, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
			Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: dir, EventsEnabled: &report,
			BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
		})
		return err
	})
	b.do("save "+selector, allow, chromedp.Click(selector))

	for e, err := range begun {
		if err != nil {
			b.t.Fatalf("save %s: %v\nthe page shows:\n%s", selector, err, b.text("main"))
		}
		name = e.SuggestedFilename
		break
	}

	for e, err := range progress {
		if err != nil || e.State == cdpbrowser.DownloadProgressStateCanceled {
			b.t.Fatalf("save %s: %s, %v", selector, e.State, err)
		}
		if e.State != cdpbrowser.DownloadProgressStateCompleted {
			continue
		}
		if content, err = os.ReadFile(filepath.Join(dir, e.GUID)); err != nil {
			b.t.Fatal(err)
		}
		break
	}

	return name, content
}

// filteredView logs calls of two teams in turn, and opens the list of one team's calls
// through the form. It returns the ids of that team's calls, the newest first. An address
// cannot hold the team's name as it is.
func filteredView(server *node, b *browser, team string) (ids []string) {
	for n := range 10 {
		owner := []string{team, "another"}[n%2]
		call := asked("What does <R&D> cost?", fmt.Sprint("50 % of ", n))
		call["metadata"], call["tags"] = map[string]string{"team": owner}, []string{"a b", "c+d"}
		call["prompt_id"], call["prompt_version"] = "greet customers", 2
		id := server.track("/rest/track-request", adminKey, call)
		if owner == team {
			ids = append(ids, id)
		}
	}
	slices.Reverse(ids)

	b.visit("/requests?col=model&col=tags")
	b.fill("#line", "cost team:"+strconv.Quote(team))
	b.press(".filter .primary")

	return ids
}

func TestAViewIsExportedAsItIsShown(t *testing.T) {
	server, b := founded(t)
	publishVersions(server)
	ids := filteredView(server, b, "R&D = 50% + x")
	b.shows(".count", "5 requests")

	b.do("unfold", chromedp.Click(".export summary"))
	b.shows(".export", "promptspool requests import")
	b.screenshots("export")

	// A file says what it is: a folder of downloads has many.
	day := time.Now().Format(time.DateOnly)
	fileName := func(what, extension string) string {
		return what + "-cost-team-r-d-50-x-" + day + extension
	}

	name, records := b.saved(".export [href*='format=records']")
	var got []string
	for line := range bytes.Lines(records) {
		var r wire.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, r.RequestID)
	}
	if diff := cmp.Diff(ids, got); diff != "" || name != fileName("records", ".jsonl") {
		t.Errorf("%s (-shown +saved):\n%s", name, diff)
	}

	// The first has the columns of the list, the other all.
	name, table := b.saved(".export [href*='format=csv']:not([href*='col='])")
	header, _, _ := strings.Cut(string(table), "\n")
	if !strings.HasPrefix(header, "started_at,request_id,accepted_at,function_name,") ||
		name != fileName("requests", ".csv") {
		t.Errorf("%s begins with %s", name, header)
	}
	name, table = b.saved(".export [href*='format=csv'][href*='col=']")
	rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
	if err != nil || len(rows) == 0 || name != fileName("requests", ".csv") ||
		strings.Join(rows[0], " ") != "started_at status error_message request_id accepted_at model tags" ||
		rows[1][6] != "a b,c+d" {
		t.Fatalf("%s: %d rows, %v", name, len(rows), err)
	}
	got = nil
	for _, row := range rows[1:] {
		got = append(got, row[3])
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("%s (-shown +saved):\n%s", name, diff)
	}

	name, lines := b.saved(".export [href*='format=events']")
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	other := startServer(t, t.TempDir(), "127.0.0.1:0")
	env, url := []string{"PROMPTSPOOL_KEY=" + adminKey}, "http://"+other.addr
	out, errs, code := runCommand(t, env, "requests", "import", file, "--url", url)
	if code != 0 || name != fileName("events", ".jsonl") {
		t.Fatalf("import %s: %d\n%s%s", name, code, out, errs)
	}
	for _, id := range ids {
		there, here := server.record(id, events(1)), other.record(id, events(1))
		if diff := cmp.Diff(there, here, cmpopts.IgnoreFields(wire.RecordEvent{}, "ArrivedAt")); diff != "" {
			t.Errorf("record %s, there (-) and here (+):\n%s", id, diff)
		}
	}
	if n := other.total(map[string]any{}); n != len(ids) {
		t.Errorf("%d records arrived, of %d", n, len(ids))
	}
}

func TestEveryLinkOfAViewKeepsItsFilter(t *testing.T) {
	server, b := founded(t)
	publishVersions(server)
	const team = "R&D = 50% + x"
	ids := filteredView(server, b, team)

	showsList := func() {
		t.Helper()
		b.shows(".count", "5 requests")
		b.shows(".chips", team)
		b.holds("the words are kept", `document.querySelector("[data-search]").value.startsWith("cost ")`)
		if head := b.text("thead"); strings.Contains(head, "Template") || !strings.Contains(head, "Tags") {
			t.Errorf("other columns are shown than were chosen: %s", head)
		}
	}
	showsRecord := func(n int) {
		t.Helper()
		b.shows("main code", ids[n])
	}

	showsList()
	b.press("tbody tr:nth-child(3) a")
	showsRecord(2)
	b.press("[rel=next]")
	showsRecord(3)
	b.press("[rel=prev]")
	showsRecord(2)
	b.press("[rel=prev]")
	showsRecord(1)

	b.fill("[name=score]", "87")
	b.do("set", chromedp.Click(".facts form button"))
	b.waitsFor("#scores .scores", "87")
	showsRecord(1)
	b.press("[rel=prev]")
	showsRecord(0)
	if b.text("[rel=prev]") != "" {
		t.Error("there is a newer one than the newest of the view")
	}
	b.press(".trail a")
	showsList()

	// The link to the version that a record was rendered with.
	b.press("tbody tr:nth-child(3) a")
	b.press(`.facts a[href^="/template?"][href*="v="]`)
	b.shows("h1", "greet customers")
	b.holds("version 2 is shown", `new URL(location).searchParams.get("v") === "2"`)
	if r := b.status(); r != http.StatusOK {
		t.Errorf("the link to a version leads to %d", r)
	}
}

// status returns the status of the page that is shown.
func (b *browser) status() (status int) {
	b.t.Helper()
	const read = `performance.getEntriesByType("navigation")[0].responseStatus`
	status, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](read))
	if err != nil {
		b.t.Fatal(err)
	}
	return status
}

func TestAFailedCallShowsWhyFirst(t *testing.T) {
	server, b := founded(t)
	failedCall := func(response any, fields map[string]any) string {
		call := asked("What does it cost?", "")
		call["request_response"] = response
		for name, value := range fields {
			call[name] = value
		}
		return server.track("/rest/track-request", adminKey, call)
	}

	const message = "Gave up after 3 attempts: <b>429</b>"
	limited := failedCall(
		map[string]any{"error": map[string]any{
			"type": "tokens", "message": "Slow down.", "code": "rate_limit_exceeded",
		}},
		map[string]any{"status": "ERROR", "error_type": "PROVIDER_RATE_LIMIT", "error_message": message},
	)
	unparsed := failedCall(map[string]any{"weird": []int{1}}, nil)
	long := failedCall(map[string]any{"weird": strings.Repeat("x", 6_000)}, nil)
	env, url := []string{"PROMPTSPOOL_KEY=" + adminKey}, "http://"+server.addr

	b.visit("/requests/" + limited)
	b.shows("main .fault", "PROVIDER_RATE_LIMIT", message, `"code": "rate_limit_exceeded"`)
	b.holds("it comes before the conversation", `Boolean(document.querySelector(".fault").compareDocumentPosition(
		document.querySelector(".talk")) & Node.DOCUMENT_POSITION_FOLLOWING)`)
	if talk := b.text(".talk"); strings.Contains(talk, "parse") {
		t.Errorf("the conversation says %s", talk)
	}
	b.screenshots("failed")
	out, errs, code := runCommand(t, env, "requests", "get", limited, "--url", url)
	want := "PROVIDER_RATE_LIMIT\n  " + message + "\n\nResponse:\n  {\n    \"error\": {\n"
	if code != 0 || !strings.HasPrefix(out, want) || !strings.Contains(out, `"code": "rate_limit_exceeded"`) {
		t.Errorf("requests get: %d\n%s%s", code, out, errs)
	}
	if r := server.record(limited, events(1)); r.ErrorMessage != message || !r.Readable {
		t.Errorf("the record says %q, readable %t", r.ErrorMessage, r.Readable)
	}

	// A chosen set of columns without the status does not hide that a call failed.
	b.visit("/requests?col=model")
	b.shows("tbody tr.failed:nth-child(3) td:first-child", "failed")
	b.visit("/requests")
	b.screenshots("failed-list")

	b.visit("/requests/" + unparsed)
	b.shows(".talk", "We could not parse this response. Raw response:", `"weird": [`)
	b.screenshots("unparsed")
	out, _, _ = runCommand(t, env, "requests", "get", unparsed, "--url", url)
	if !strings.Contains(out, "We could not parse this response. Raw response:\n  {\n    \"weird\": [\n") {
		t.Errorf("requests get:\n%s", out)
	}

	b.visit("/requests/" + long)
	b.shows(".talk .raw", "Response (5.9 KiB)")
	b.holds("a long response is folded", `!document.querySelector(".talk .raw").open`)
	b.do("unfold", chromedp.Click(".talk .raw summary"))
	b.do("show all", chromedp.Click(".talk .raw [data-whole]"))
	b.waitsFor(".talk .raw", strings.Repeat("x", 6_000))
}
