package databasetest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/metrics/cputimetest"
	"promptspool/spool/archive"
	"promptspool/spool/archive/records"
)

// SessionLoad is what an application sends: sessions whose calls repeat what was said before.
type SessionLoad struct {
	Name     string
	Sessions int
	Turns    int // calls of each session
	New      int // bytes that are new in a call, half of them in the answer
	Same     int // bytes of instructions and tools that all calls have
	Picture  int // bytes of a picture that all calls of a session have
}

// SessionLoads are the loads for which the documentation says what they take.
// PROMPTSPOOL_BENCH_SESSIONS sets how many sessions the first has, and the others by it.
func SessionLoads() []SessionLoad {
	n := 200
	if set, err := strconv.Atoi(os.Getenv("PROMPTSPOOL_BENCH_SESSIONS")); err == nil {
		n = set
	}

	return []SessionLoad{
		{Name: "20-turns", Sessions: n, Turns: 20, New: 8 << 10},
		{Name: "50-turns", Sessions: n / 4, Turns: 50, New: 8 << 10},
		{Name: "tools", Sessions: n / 2, Turns: 20, New: 2 << 10, Same: 60 << 10},
		{Name: "picture", Sessions: n / 20, Turns: 20, New: 1 << 10, Picture: 1 << 20},
		{Name: "one-prompt", Sessions: 10 * n, Turns: 1, New: 1 << 10, Same: 6 << 10},
		{Name: "single", Sessions: 20 * n, Turns: 1, New: 4 << 10},
	}
}

// Sent is what a load has sent.
type Sent struct {
	Calls int
	Bytes int64 // of bodies
}

// Send writes what comes in an hour, a third of the sessions at a time, their calls in turns. Twenty minutes
// pass until a session has ended and was quiet for ten. After each third it calls pack, which packs what waits,
// with what was sent so far. It reports the processor time of all but that.
func (l *SessionLoad) Send(b *testing.B, store archive.Store, now time.Time, pack func(Sent)) (sent Sent) {
	service := records.New(records.Config{
		Store:   store,
		Metrics: metrics.New("server", "bench"),
		Logger:  slog.New(slog.DiscardHandler),
	})
	random := rand.New(rand.NewPCG(1, 2))
	same := sentence(random, l.Same)
	histories := make([][]map[string]string, l.Sessions)
	pictures := make([]string, l.Sessions)
	for i := range pictures {
		raw := make([]byte, l.Picture*3/4)
		for j := range raw {
			raw[j] = byte(random.Uint32())
		}
		pictures[i] = base64.StdEncoding.EncodeToString(raw)
	}

	var events []wire.Event
	used := cputimetest.Used()
	var making time.Duration
	flush := func() {
		if _, err := service.Record(b.Context(), wire.Identity{Account: "bench"}, events); err != nil {
			b.Fatal(err)
		}
		events = events[:0]
	}
	third := (l.Sessions + 2) / 3
	for n := range third * l.Turns * 3 {
		turn := n / third % l.Turns
		s := n/third/l.Turns*third + n%third
		if s < l.Sessions {
			begun := cputimetest.Used()
			histories[s] = append(histories[s], map[string]string{"role": "user", "content": sentence(random, l.New/2)})
			answer := sentence(random, l.New/2)
			at := now.Add(time.Duration(sent.Calls-l.Turns*l.Sessions) * 10 * time.Millisecond)
			body, _ := json.Marshal(map[string]any{
				"function_name": "openai.chat.completions.create", "provider_type": "openai",
				"kwargs": map[string]any{
					"model": "gpt-4o", "instructions": same, "messages": histories[s], "image": pictures[s],
				},
				"request_response": map[string]any{
					"id": fmt.Sprintf("chatcmpl-%d-%d", s, turn), "model": "gpt-4o",
					"choices": []any{map[string]any{
						"index": 0, "finish_reason": "stop",
						"message": map[string]string{"role": "assistant", "content": answer},
					}},
					"usage": map[string]int{"prompt_tokens": 1000 * turn, "completion_tokens": 500},
				},
				"request_start_time": at, "request_end_time": at.Add(3 * time.Second),
				"metadata": map[string]string{
					"session_id": fmt.Sprint("session-", s), "user_id": fmt.Sprint("user-", s%50),
				},
			})
			histories[s] = append(histories[s], map[string]string{"role": "assistant", "content": answer})
			making += cputimetest.Used() - begun

			events = append(events, wire.Event{
				ID: wire.NewID(), RequestID: wire.NewID(), Kind: wire.KindRequest, AcceptedAt: at, Body: body,
			})
			sent.Calls++
			sent.Bytes += int64(len(body))
			if len(events) == 20 {
				flush()
			}
		}
		if (n+1)%(third*l.Turns) == 0 {
			flush()
			begun := cputimetest.Used()
			pack(sent)
			making += cputimetest.Used() - begun
		}
	}
	b.Logf("%s: %d calls, %.1f MB, %.2f ms of processor a MB", l.Name, sent.Calls, float64(sent.Bytes)/1e6,
		ms(cputimetest.Used()-used-making)/(float64(sent.Bytes)/1e6))

	return sent
}

// Read reads all records in turn, as an export does, and reports how long each takes.
func (s Sent) Read(b *testing.B, store archive.Store, when string) {
	n, begun, took := 0, cputimetest.Used(), []time.Duration{}
	for after, more := "", true; more; {
		ids, err := store.IDs(b.Context(), "bench", after, 1000)
		for _, id := range ids {
			from := time.Now()
			if err == nil {
				_, _, err = store.Record(b.Context(), "bench", id)
			}
			took = append(took, time.Since(from))
			after = id
			n++
		}
		if err != nil {
			b.Fatal(err)
		}
		more = len(ids) == 1000
	}

	slices.Sort(took)
	b.Logf("%s, %d records are read in %.2f ms of processor each, p95 %.2f ms", when, n,
		ms(cputimetest.Used()-begun)/float64(n), ms(took[n*95/100]))
}

// Tell reports what a load takes: the bodies alone, all files, and what is not bodies.
func (s Sent) Tell(b *testing.B, name string, bodies, files int64) {
	b.Logf("%-10s bodies %.4f of what was sent, files %.4f, besides bodies %.0f bytes a call", name,
		float64(bodies)/float64(s.Bytes), float64(files)/float64(s.Bytes), float64(files-bodies)/float64(s.Calls))
}

// sentence returns text that packs about as English does.
func sentence(random *rand.Rand, bytesMost int) string {
	var b bytes.Buffer
	for b.Len() < bytesMost {
		// Few words are frequent, and there are some names and numbers.
		word := int(3000 * random.Float64() * random.Float64() * random.Float64())
		b.WriteString(lexicon[word%len(lexicon)])
		if random.IntN(12) == 0 {
			fmt.Fprintf(&b, " %d", random.IntN(100_000))
		}
		b.WriteByte(' ')
	}
	return b.String()[:bytesMost]
}

var syllables = []string{"ta", "re", "in", "o", "s", "mi", "le", "con", "du", "er", "al", "pu", "ver", "n"}

// lexicon are words of the lengths of English ones.
var lexicon = func() (words []string) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		var word strings.Builder
		for range 2 + random.IntN(4) {
			word.WriteString(syllables[random.IntN(len(syllables))])
		}
		words = append(words, word.String())
	}
	return words
}()
