//go:build linux

package dashboard

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"promptspool/cmd/promptspool/e2e/harness"
)

// TestTheDocumentationsPicturesOfTheDashboard goes through the pages that the documentation shows. `make screenshots`
// takes the pictures on the way; each page must show what its picture is there for.
func TestTheDocumentationsPicturesOfTheDashboard(t *testing.T) {
	_, b := seeded(t)
	for _, picture := range []struct {
		name, path string
		height     int64
		shows      []string
	}{
		{"overview", "/?filter=since:7d&bucket=day&metric=cost&group=metadata.customer", 580,
			[]string{"Cost", "Sahara"}},
		{"requests", "/requests?filter=template%3Asupport%2Freply+latency%3A%3E700ms", 424,
			[]string{"support/reply", "Latency"}},
		{"search", "/requests?filter=" + url.QueryEscape(`"`+demoPhrase+`"`), 420, []string{demoPhrase}},
		{"sessions", "/sessions?filter=turns%3A%3E3&sort=cost", 340, []string{"most expensive first", "Mean score"}},
		{"template", "/template?name=support%2Freply", 720, []string{"prod", "staging"}},
		{"edit", "/template/edit?name=support%2Freply", 720, []string{"Save as version"}},
		{"compare", "/template/compare?name=support%2Freply&a=6&b=8", 560, []string{"Say so if you do not know."}},
		{"statistics", "/template/statistics?name=support%2Freply&span=since:30d", 760, []string{"What the calls say"}},
	} {
		b.do("look", chromedp.EmulateViewport(pictureWidth, picture.height))
		b.visit(picture.path)
		b.shows("main", picture.shows...)
		b.picture(picture.name)
	}

	// A call of a conversation, with the form to score it.
	b.do("look", chromedp.EmulateViewport(pictureWidth, 720))
	b.visit("/requests?filter=" + url.QueryEscape("user_id:"+demoTalkUser+" template:support/agent"))
	b.press("tr[data-href] .c-call")
	b.shows("main", "Score", "Latency")
	b.picture("request")
	b.press(`[data-key="t"]`)
	b.shows("main", "so far")
	b.do("look", chromedp.EmulateViewport(pictureWidth, 620))
	b.picture("conversation")

	server, b := founded(t)
	r := server.Call("POST", "/v1/traces", agentTrace, "Content-Type", "application/json", "X-API-KEY",
		harness.AdminKey)
	if r.Status != 200 {
		t.Fatalf("a trace: %d %s", r.Status, r.Body)
	}
	b.do("look", chromedp.EmulateViewport(pictureWidth, 480))
	b.visit("/traces/" + agentTraceID)
	b.shows("main", "Answer a customer", "track_parcel")
	b.picture("trace")
}

// pictureWidth is wider than a page of the documentation, which shows more of the dashboard in a smaller size.
const pictureWidth = 1240

// picture saves what the window shows in the folder of the pictures, if PROMPTSPOOL_SCREENSHOTS is set.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("PROMPTSPOOL_SCREENSHOTS")
	if dir == "" {
		return
	}

	quality := int64(50)
	take := func(ctx context.Context, tab *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, tab, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format:  page.CaptureScreenshotFormatWebp,
			Quality: &quality,
		})
		if err != nil {
			return nil, err
		}
		return r.Data, nil
	}
	image, err := chromedp.Run(b.ctx, chromedp.Action[[]byte](take))
	if err != nil {
		b.t.Fatal(err)
	}

	dir = filepath.Join(dir, "docs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".webp"), image, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
