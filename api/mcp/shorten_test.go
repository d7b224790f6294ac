package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"promptspool/api/wire/jsonscan"
)

// rest finds how to read on.
var rest = regexp.MustCompile(`… \[\d+ more (\w+): path=(\S+) offset=(\d+)\]$`)

func TestWhatIsCutCanBeReadOn(t *testing.T) {
	long := strings.Repeat("Ünï ", 5_000)
	session := connect(t, always(map[string]any{
		"success": true,
		"request": map[string]any{"messages": []any{
			map[string]any{"role": "user", "content": long},
			map[string]any{"role": "user", "content": "short", "a/b~c": "odd"},
		}},
	}))

	// The short texts are whole, and the long one in parts that fit together.
	read, path, offset, parts := "", "", 0, 0
	for {
		answer, failed := ask(t, session, "get", map[string]any{"id": "1", "path": path, "offset": offset})
		var text string
		var whole struct {
			Data struct {
				Request struct{ Messages []map[string]string }
			}
		}
		var part struct{ Data string }
		switch {
		case failed || len(answer)/tokenBytes > 4000:
			t.Fatalf("%d tokens: %.300s", len(answer)/tokenBytes, answer)
		case path == "":
			if err := json.Unmarshal([]byte(answer), &whole); err != nil {
				t.Fatal(err)
			}
			text = whole.Data.Request.Messages[0]["content"]
			if whole.Data.Request.Messages[1]["content"] != "short" {
				t.Errorf("%.300s", answer)
			}
		default:
			if err := json.Unmarshal([]byte(answer), &part); err != nil {
				t.Fatal(err)
			}
			text = part.Data
		}

		parts++
		next := rest.FindStringSubmatch(text)
		if next == nil {
			read += text
			break
		}
		read += strings.TrimSuffix(text, next[0])
		path = next[2]
		fmt.Sscan(next[3], &offset)
	}
	if read != long || parts < 2 {
		t.Errorf("%d parts give %d bytes of %d", parts, len(read), len(long))
	}

	odd, _ := ask(t, session, "get", map[string]any{"id": "1", "path": "/request/messages/1/a~1b~0c", "offset": 1})
	if !strings.Contains(odd, `"data":"dd"`) {
		t.Error(odd)
	}
	for _, path := range []string{"request", "/nowhere", "/request/messages/2", "/request/messages/0/content/1"} {
		if text, failed := ask(t, session, "get", map[string]any{"id": "1", "path": path}); !failed {
			t.Errorf("%s: %s", path, text)
		}
	}
}

func TestAPageHasFewerRowsIfTheyDoNotFit(t *testing.T) {
	row := map[string]string{}
	for i := range 40 {
		row[fmt.Sprint("metadata ", i)] = strings.Repeat("value ", 30)
	}
	var asked []int
	session := connect(t, func(_ context.Context, _, _ string, body []byte) (json.RawMessage, error) {
		var q struct {
			PerPage int `json:"per_page"`
		}
		if err := json.Unmarshal(body, &q); err != nil {
			t.Error(err)
		}
		asked = append(asked, q.PerPage)
		items := make([]any, q.PerPage)
		for i := range items {
			items[i] = row
		}
		return jsonscan.Marshal(map[string]any{"items": items, "next_cursor": fmt.Sprint("after ", q.PerPage)})
	})

	answer, _ := ask(t, session, "search", map[string]any{"per_page": 20})
	d := data(t, answer)
	rows := len(d["items"].([]any))
	if fmt.Sprint(asked) != "[20 10 5 2]" || rows != 2 || d["next_cursor"] != "after 2" {
		t.Errorf("asked for %v rows, answered %d and %v", asked, rows, d["next_cursor"])
	}
}

func TestStatisticsHaveASeriesIfOneIsWanted(t *testing.T) {
	session := connect(t, always(map[string]any{"items": []any{map[string]any{
		"value": "gpt", "series": []int{1}, "cost": nil,
		"scores": []any{map[string]any{"name": "a", "histogram": []int{1}}},
	}}}))

	for arguments, want := range map[string]string{
		`{}`:                `{"scores":[{"name":"a"}],"value":"gpt"}`,
		`{"bucket": "day"}`: `{"scores":[{"name":"a"}],"series":[1],"value":"gpt"}`,
	} {
		if answer, _ := ask(t, session, "statistics", json.RawMessage(arguments)); !strings.Contains(answer, want) {
			t.Errorf("%s: %s, want %s", arguments, answer, want)
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add([]byte(`{"a": ["b", null, 1.5e9, {"": "\ud800\u009b"}], "c": [[[[]]]]}`), 500, "/a/0", 0)
	f.Add([]byte(`[`+strings.Repeat(`"long text",`, 3000)+`{}]`), 600, "", 7)
	deep := strings.Repeat("[", 400) + strings.Repeat("]", 400)
	f.Add([]byte(`{"`+strings.Repeat("name", 3000)+`":`+deep+`}`), 500, "", 0)

	f.Fuzz(func(t *testing.T, value []byte, most int, path string, offset int) {
		if !json.Valid(value) || jsonscan.Depth(value, 500) > 500 {
			return
		}
		most = 500 + max(most, -most)%1000
		at, found := lookup(value, path)
		if !found {
			return
		}
		s := shortening{bytesMax: most, mark: true, path: path, offset: max(offset, 0)}
		short, _ := s.shorten(value, at)
		if !json.Valid(short) || len(short) > most {
			t.Errorf("%d bytes of %d: %s", len(short), most, short)
		}
	})
}
