//go:build linux

package releases

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

// moreDir is a folder of a release with a second set of what its servers left, under the same names. It has what
// the first lacks: writes to a cache, several spellings of words, and on PostgreSQL summaries and indexes of words.
const moreDir = "more"

// Where the calls of the second set are.
const (
	early = 20_000 // in blocks and units, each at the side of one that stands alone:
	late  = 30_000

	judged     = 100 // behind early or late: a call that two have scored
	overwrites = 101 // a call with more values that it does not show than have terms

	manyCalls = 4300       // a summary on PostgreSQL is of 4096
	manyCall  = "01a1f830" // begins the ids of these
)

// spellings are words that 0.1.0 does not know as the same.
var spellings = []string{
	"don’t", "don't", "straße", "STRASSE", "co\u00adoperate", "cooperate", "zero\u200bwidth", "zerowidth",
}

// written are the tokens that calls wrote to a cache, those for an hour of them, and a call without usage.
var written = []*cacheWrites{{0, 0}, {100, 0}, {2048, 0}, {100, 0}, {5000, 3000}, nil}

type cacheWrites struct{ tokens, hour int }

// moreAsked are the questions of the second set.
var moreAsked = asking{
	questions: slices.Concat([]string{
		`GET /api/public/v2/requests/` + id(early+4),
		`GET /api/public/v2/requests/` + id(late+4),
		`GET /api/public/v2/requests/` + id(late+judged),
		`POST /api/public/v2/requests/search {"filter":"tag:many","per_page":3,"page":700}`,
		`POST /api/public/v2/requests/search {"filter":"tag:many time:2026-11-19","per_page":3}`,
		`POST /api/public/v2/requests/search {"filter":"tag:many since:2026-11-18 before:2026-11-20","per_page":3}`,
		`POST /api/public/v2/requests/analytics {"bucket":"day","score_agreement":"faithful"}`,
		`POST /api/public/v2/requests/template-statistics {}`,
		`POST /api/public/v2/requests/export {"filter":"tag:(cached or odd)","format":"csv"}`,
		`POST /api/public/v2/sessions/search {}`,
	},
		finding(moreFound...), finding(moreMissed...),
		sorting("tag:(cached or odd)", orders...), sorting("tag:many", "cost", "latency_ms"),
		summing("tag:cached", "book", "status:warning"),
		suggesting("tool_names", "finish_reason", "tags"),
	),
	deletions: []string{
		`DELETE /api/public/v2/requests?metadata_key=key-7&metadata_value=22`,
		`DELETE /api/public/v2/requests?metadata_key=key-7&metadata_value=5&before=2026-11-20T09:00:26Z`,
		`DELETE /api/public/v2/requests?metadata_key=key-7&metadata_value=5&before=2026-11-20T09:00:27Z`,
		`GET /api/public/v2/requests/` + id(early+overwrites),
	},
}

// moreFound are filters that find calls of the second set.
var moreFound = []string{
	`tag:cached`, `tag:spelt`, `session:s-cached`, `input_tokens:>1000`, `cached_tokens:7 tag:odd`,
	`-cost:* tag:cached`,
	`score:55`, `score.faithful:0.5`, `author:judge`, `metadata_key:key-7`, `key-7:21`,
	`status:warning`, `finish:stop tag:odd`, `model:claude* tag:odd`, `provider:anthropic tag:judged`,
	`is:tool_call`, `tool:get_weather`, `is:json`, `tag:odd output.intent:refund`, `tag:odd output_key:sure`,
	`tag:odd user_intent:frustrated`, `tag:odd agent_intent:refusal`, `tag:odd agent_intent:apologetic`,
	`book`, `input:"in the book"`, `output:much`, `input:intent* OR which`, `"say" tag:spelt time:2026-11-19`,
}

// moreMissed are such filters that find nothing.
var moreMissed = []string{
	`tag:book`, `session:cached`, `input_tokens:>6000`, `cached_tokens:8`, `score:54`, `author.default:judge`,
	`metadata_key:key-50`, `key-7:20`, `finish:length`, `tool:get`,
	`tag:odd output.intent:sure`, `tag:odd output_key:refund`,
	`tag:odd user_intent:satisfied`, `tag:odd agent_intent:uncertain`, `input:much`, `input:"the in book"`,
}

// usage returns the usage of a call of Anthropic's.
func (w *cacheWrites) usage() string {
	if w == nil {
		return `null`
	}
	return fmt.Sprintf(`{"input_tokens":10,"cache_read_input_tokens":7,"cache_creation_input_tokens":%d,`+
		`"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},"output_tokens":3}`,
		w.tokens, w.tokens-w.hour, w.hour)
}

// cachedCall returns the body of a call of Anthropic's.
func cachedCall(at time.Time, question, answer string, w *cacheWrites, more string) string {
	return fmt.Sprintf(`{"function_name":"anthropic.Anthropic.messages.create","provider_type":"anthropic","kwargs":`+
		`{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":%q}]},"request_response":{"type":"message",`+
		`"role":"assistant","model":"claude-sonnet-4-5","stop_reason":"end_turn","content":%s,"usage":%s},`+
		`"request_start_time":%d.5,"request_end_time":%d.75%s}`,
		question, answer, w.usage(), at.Unix(), at.Unix(), more)
}

// texts returns the content of an answer.
func texts(text string) string { return fmt.Sprintf(`[{"type":"text","text":%q}]`, text) }

// addMore adds calls of all kinds, from a number and a time on.
func (s *sender) addMore(from int, began time.Time) {
	n := 0
	add := func(question, answer string, w *cacheWrites, more string) {
		at := began.Add(time.Duration(n) * time.Second)
		s.add(wire.KindRequest, from+n, cachedCall(at, question, answer, w, more))
		n++
	}
	for _, w := range written {
		add("What is in the book?", texts("Too much."), w, `,"tags":["cached"],"session_id":"s-cached"`)
	}
	for _, word := range spellings {
		add("Say "+word+" please.", texts("So "+word+" it is."), written[0], `,"tags":["spelt"]`)
	}
	add("Which intent?", texts(`{"intent":"refund","sure":true}`), written[0], `,"tags":["odd"]`)
	add("This is useless, I am fed up!", texts("I'm sorry, I can't help with that."), written[0], `,"tags":["odd"]`)
	add("Weather?", `[{"type":"tool_use","id":"t","name":"get_weather","input":{"city":"Oslo"}}]`, written[0],
		`,"tags":["odd"],"status":"WARNING"`)

	n = judged
	add("Judge me.", texts("Gladly."), written[1], `,"tags":["judged"]`)
	for _, author := range []string{"ann", "judge"} {
		s.add(wire.KindScore, from+judged,
			fmt.Sprintf(`{"name":"faithful","value":0.5,"author":%q,"source":"human"}`, author))
	}
	add("Overwrite me.", texts("Often."), written[0], `,"tags":["overwritten"]`)
	for value := range 22 {
		keys := map[string]string{}
		for key := range 50 {
			keys[fmt.Sprint("key-", key)] = fmt.Sprint(value)
		}
		body, _ := json.Marshal(map[string]any{"metadata": keys})
		s.add(wire.KindMetadata, from+overwrites, string(body))
	}
}

// fillMore gives a server the second set. settled starts it again, and returns it as soon as it has packed what it has.
func fillMore(server *harness.Node, settled func(*harness.Node) *harness.Node) *harness.Node {
	log := sender{server: server}
	log.addMore(early, began.Add(-20*time.Hour))
	log.send()
	for n := range manyCalls {
		// Bytes that repeat keep the files small: all but some digits of the ids, and the bodies of a hundred.
		at := began.Add(-time.Duration(n/100) * time.Hour)
		event := wire.Event{
			ID:         manyID("01a1f82f", n),
			Kind:       wire.KindRequest,
			RequestID:  manyID(manyCall, n),
			AcceptedAt: began,
			Sidecar:    "pod-1",
			Body: json.RawMessage(fmt.Sprintf(`{"function_name":"f","kwargs":{},"request_response":{},`+
				`"request_start_time":%d,"request_end_time":%d,"tags":["many"]}`, at.Unix(), at.Unix()+1)),
		}
		log.lines = event.AppendLine(log.lines)
		if n%1000 == 999 {
			log.send()
		}
	}
	log.send()

	log.server = settled(server)
	log.addMore(late, began)
	log.add(wire.KindScore, early, `{"score":55}`) // of a row in a block
	log.send()

	return settled(log.server) // the score has removed a summary
}

// manyID returns the id of one of many calls, or of its event.
func manyID(prefix string, n int) string { return fmt.Sprintf("%s-0000-7000-8000-%012x", prefix, n) }

// writeMore writes the second set of a release.
func writeMore(t *testing.T, program, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	server := startOf(t, program, t.TempDir(), harness.FreePort(t), "server", "--name", "central")
	server = fillMore(server, func(server *harness.Node) *harness.Node {
		server.Stop()
		return startOf(t, program, server.Data, server.Addr, "server", "--name", "central")
	})
	says(t, program, "backup", "--data", server.Data, filepath.Join(dir, backupFile))
	events, _ := harness.Run(t, 0, "requests", "export", "--url", "http://"+server.Addr)
	server.Stop()
	keep(t, dir, eventsFile, compress(t, []byte(events)))
	keep(t, dir, serverFile, compress(t, archived(t, server.Data)))
	keepJSON(t, dir, serverSaid, asked(t, program, dir, serverSaid, moreAsked))

	dsn := postgrestest.Plain(t)
	shared := fillMore(startShared(t, program, dsn), func(server *harness.Node) *harness.Node {
		server.Stop()
		server = startShared(t, program, dsn)
		db := postgrestest.Connect(t, dsn)
		server.Eventually(func() (made bool) {
			const both = `SELECT EXISTS (SELECT FROM summaries) AND EXISTS (SELECT FROM text_units)`
			if err := db.QueryRow(t.Context(), both).Scan(&made); err != nil {
				t.Fatal(err)
			}
			return made
		}, func() string { return "no summary or no index of words is made" })
		return server
	})
	shared.Stop()
	keep(t, dir, dumpFile, dumped(t, dsn))
	keepJSON(t, dir, dumpSaid, asked(t, program, dir, dumpSaid, moreAsked))
}

// moreIsRestored restores a backup of the second set.
func moreIsRestored(t *testing.T, dir string) {
	data := filepath.Join(t.TempDir(), "restored")
	harness.Run(t, 0, "restore", "--data", data, filepath.Join(dir, backupFile))
	server := harness.StartServer(t, data, "127.0.0.1:0")
	knowsMore(t, server, read[said](t, dir, serverSaid))
}

// knowsMore fails unless a server knows what the release knew of the second set, and what this version knows of it and
// of new calls.
func knowsMore(t *testing.T, server *harness.Node, said said) {
	t.Helper()
	for _, a := range said.Answers {
		a.still(t, server)
	}
	knowsCacheWrites(t, server, 2)
	findsSpellings(t, server, 2, spelt)
	addFresh(server)
	knowsCacheWrites(t, server, 3)
	findsSpellings(t, server, 3, spelt)
	for _, a := range said.Deletions {
		a.still(t, server, "gone_by")
	}
}
