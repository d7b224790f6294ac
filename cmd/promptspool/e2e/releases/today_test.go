//go:build linux

package releases

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/cmd/promptspool/e2e/harness"
)

// fresh are calls as those of early and late, that this version takes.
const fresh = 60_000

// spelling is a word, with how many of the spellings of the second set it finds.
type spelling struct {
	word string
	was  int // by 0.1.0
	is   int // by this version
}

// spelt begin with one of each kind.
var spelt = []spelling{
	{"don't", 1, 2},
	{"strasse", 1, 2},
	{"cooperate", 1, 2},
	{"width", 1, 0},
	{"don’t", 2, 2},
	{`output:"so don't it is"`, 1, 2},
	{"straße", 1, 2},
	{"STRASSE please", 1, 2},
	{"input:strass*", 1, 2},
	{"co\u00adoperate", 1, 2},
	{"operate", 1, 0},
	{"zero\u200bwidth", 1, 2},
	{"zerowidth", 1, 2},
}

// findsSpellings fails unless words find those of n sets of calls.
func findsSpellings(t *testing.T, server *harness.Node, n int, spelt []spelling) {
	t.Helper()
	for _, s := range spelt {
		if got := server.Total(map[string]any{"filter": s.word}); got != n*s.is {
			t.Errorf("%q finds %d calls of %d", s.word, got, n*s.is)
		}
	}
}

// knowsCacheWrites waits until the tokens that n sets of calls wrote to a cache are found, sorted, summed and shown.
func knowsCacheWrites(t *testing.T, server *harness.Node, n int) {
	t.Helper()
	for filter, found := range map[string]int{
		"cache_write_tokens:>0":                5,
		"cache_write_tokens:>100":              2,
		"cache_write_tokens:2048":              1,
		"cache_write_tokens:0 tag:cached":      1,
		"-cache_write_tokens:* -tag:many":      1,
		"cache_write_tokens:100..5000 gladly":  1,
		"cache_write_tokens:>5000":             0,
		"cache_write_tokens:>0 time:..2026-11": 5,
	} {
		var got int
		server.Eventually(func() bool {
			got = server.Total(map[string]any{"filter": filter})
			return got == n*found
		}, func() string { return fmt.Sprintf("%s finds %d calls of %d", filter, got, n*found) })
	}

	want := []any{}
	for _, tokens := range []string{"5000", "2048", "100", "100", "0"} {
		for range n {
			want = append(want, json.Number(tokens))
		}
	}
	for range n {
		want = append(want, nil)
	}
	sorted := column(t, server, "search", `{"filter":"tag:cached","sort_by":"cache_write_tokens","per_page":100}`)
	if diff := cmp.Diff(want, sorted); diff != "" {
		t.Errorf("sorted by cache_write_tokens:\n%s", diff)
	}
	exported := column(t, server, "export", `{"filter":"tag:cached","format":"csv"}`)
	if len(exported) != len(want) || exported[1] != "5000" {
		t.Errorf("exported are cache_write_tokens %v", exported)
	}

	var sums struct {
		Total   int `json:"totalCacheWriteTokens"`
		Overall struct {
			Tokens int `json:"cache_write_tokens"`
		}
	}
	body := ask(t, server, `POST /api/public/v2/requests/analytics {}`)
	if err := json.Unmarshal(body, &sums); err != nil || sums.Total != n*7348 || sums.Overall.Tokens != sums.Total {
		t.Errorf("of %d tokens written to a cache: %s", n*7348, body)
	}
	var record struct {
		Tokens int `json:"cache_write_tokens"`
	}
	body = ask(t, server, `GET /api/public/v2/requests/`+id(early+4))
	if err := json.Unmarshal(body, &record); err != nil || record.Tokens != 5000 {
		t.Errorf("the call that wrote 5000 tokens to a cache is %s", body)
	}
}

// column returns the cache_write_tokens of the calls that a question finds.
func column(t *testing.T, server *harness.Node, what, body string) (values []any) {
	t.Helper()
	answer := decoded(t, ask(t, server, "POST /api/public/v2/requests/"+what+" "+body))
	if page, ok := answer.(map[string]any); ok {
		answer = page["items"]
	}
	for _, row := range answer.([]any) {
		values = append(values, row.(map[string]any)["cache_write_tokens"])
	}
	return values
}

// addFresh sends a server calls as those of the second set.
func addFresh(server *harness.Node) {
	log := sender{server: server, events: 100_000}
	log.addMore(fresh, began.Add(time.Hour))
	log.send()
}
