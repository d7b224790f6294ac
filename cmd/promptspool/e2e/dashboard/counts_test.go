//go:build linux

package dashboard

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/auth"
	"promptspool/api/dashboard"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics"
	"promptspool/registry"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/records"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/badgerdb"
)

// slowStore is a store on a machine that is busy with something else: a scan waits after as
// many rows as may allows, until may grows.
type slowStore struct {
	archive.Store
	may atomic.Int64
}

func (s *slowStore) Scan(
	ctx context.Context, account string, q query.Query, want rowcode.Columns, fn func(*wire.Row) (bool, error),
) (*query.Position, error) {
	n := int64(0)

	return s.Store.Scan(ctx, account, q, want, func(row *wire.Row) (bool, error) {
		for n++; n > s.may.Load(); {
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}

		return fn(row)
	})
}

// slowDashboard serves a dashboard over a slow store with calls, half of them by each of
// two models.
func slowDashboard(t *testing.T, calls int) (*slowStore, *browser) {
	t.Helper()
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	db, err := badgerdb.Open(badgerdb.Config{Dir: t.TempDir(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })

	people := auth.NewPeople(auth.PeopleConfig{Store: db})
	code, err := people.Setup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	application := wire.Application{Email: "ann@example.com", Password: "correct horse battery", Code: code}
	owner, err := people.Join(ctx, application, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}

	store := &slowStore{Store: db}
	records := records.New(records.Config{Store: store, Metrics: metrics.New("server", "test"), Logger: quiet})
	var events []wire.Event
	for n := range calls {
		events = append(events, wire.Event{
			ID:         wire.NewID(),
			Kind:       wire.KindRequest,
			RequestID:  wire.NewID(),
			AcceptedAt: time.Now(),
			Sidecar:    "host",
			Body: fmt.Appendf(nil, `{"function_name":"openai.chat","kwargs":{"model":"gpt-%d"},`+
				`"request_response":{},"prompt_id":"greet","prompt_version":1}`, n%2),
		})
	}
	if _, err := records.Record(ctx, wire.Identity{Account: owner.User.AccountID}, events); err != nil {
		t.Fatal(err)
	}

	templates := registry.New(registry.Config{Store: db, Logger: quiet})
	_, err = templates.Publish(ctx, wire.Identity{Account: owner.User.AccountID}, wire.Publish{
		PublishedName: wire.PublishedName{Name: "greet"},
		PublishedVersion: wire.PublishedVersion{
			Blueprint: []byte(`{"type":"completion","content":[{"type":"text","text":"Hi"}]}`),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := httptest.NewServer(dashboard.New(dashboard.Config{
		Config: frame.Config{
			People:   people,
			Keys:     auth.New(auth.Config{Store: db}),
			Sidecars: db,
			Views:    db,
			Version:  "test",
			Logger:   quiet,
		},
		Records:   records,
		Recorder:  records,
		Templates: templates,
	}))
	t.Cleanup(pages.Close)

	b := openBrowser(t, &harness.Node{Addr: strings.TrimPrefix(pages.URL, "http://")})
	b.visit("/sign-in")
	b.fill("[name=email]", "ann@example.com")
	b.fill("[name=password]", "correct horse battery")
	b.press("main .primary")

	return store, b
}

func TestTotalsAreExactOrMarkedUntilTheyAre(t *testing.T) {
	const calls = 3000
	store, b := slowDashboard(t, calls)
	const tile = ".tiles dd"

	// Without a filter all calls are shown, though counting them takes longer than a page may
	// wait.
	b.visit("/")
	if shown := b.text(tile); shown != "3,000" {
		t.Fatalf("the overview shows %q calls of %d, or marks them", shown, calls)
	}

	// With a filter a partial count is marked, on the number itself.
	store.may.Store(400)
	b.soon = true
	b.visit("/?filter=model:gpt-0")
	text, marked := strings.CutSuffix(b.text(tile), "+")
	if n, err := strconv.Atoi(text); err != nil || !marked || n > 400 {
		t.Errorf("%q calls are shown, at most 400 are counted", b.text(tile))
	}
	b.shows("main", "Partial result: ", "Counting…", "Count everything")
	b.screenshots("overview-partial")

	// The page is completed without being loaded again.
	store.may.Store(calls)
	b.waitsFor(tile, "1,500")
	if strings.Contains(b.text("main"), "Partial result") {
		t.Error("the count of all calls is marked as partial")
	}
	b.screenshots("overview-complete")

	// So is the page of a template's versions.
	store.may.Store(100)
	b.visit("/template/statistics?name=greet")
	b.shows("main", "Partial result: ")
	b.screenshots("statistics-partial")
	store.may.Store(calls)
	b.waitsFor("tbody", "3,000")
}
