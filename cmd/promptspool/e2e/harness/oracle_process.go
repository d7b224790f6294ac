//go:build linux

package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	little "encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"promptspool/api/wire"
)

// contentOf returns the request that is sent under an id: always the same, so that the
// oracle need not keep it. It holds what a careless store would change. Its size is from
// zero to twice the average; one in 64 is 64 times as large (at most 8 MiB), which does
// not fit in one frame of the spool if the average is 64 KiB or more.
func contentOf(id string, average int) []byte {
	return fmt.Appendf(nil, `{"request_id":%q,"function_name":"openai.ChatCompletion.create","provider_type":"openai",`+
		`"kwargs":{"model":"gpt-4","messages":[{"role":"user","content":"%s"}]},`+
		`"request_response":{"id":"x","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}},`+
		`"request_start_time":1687000000.25,"request_end_time":1687000001.5,"odd":[1,2.50,1e400,"\u2028<&>\"é\\"]}`,
		id, noiseOf(id, average))
}

// noiseOf returns the text of the request or span with an id.
func noiseOf(id string, average int) string {
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, id)
	random := rand.New(rand.NewPCG(sum.Sum64(), 0))
	size := random.IntN(2 * average)
	if random.IntN(64) == 0 {
		size = min(64*size, 8<<20)
	}

	noise := make([]byte, 0, size*3/4+8)
	for len(noise) < size*3/4 {
		noise = little.LittleEndian.AppendUint64(noise, random.Uint64())
	}

	return base64.StdEncoding.EncodeToString(noise)
}

// content is what was sent under an id.
type content struct {
	bytes int       // the average size that noiseOf was given
	span  *SpanSent // nil for a request
}

// sent holds what was sent, by the ids.
type sent map[string]content

// scoresMax is how often a request is scored: with 1, then with 2, and so on.
const scoresMax = 4

// scored is how far a request's scores came. A score is sent after the one before was
// answered or given up.
type scored struct {
	last   int // the last that was answered 200
	acked  int // how many were answered 200
	unsure int // how many were not
}

// fits compares a server's record of a request with the scores that were sent for it.
func (s scored) fits(events, score int) finding {
	switch {
	case events > 1+s.acked+s.unsure:
		return twice
	case events < 1+s.acked || score < s.last:
		return older
	}
	return asSent
}

// witness is the oracle's own process.
type witness struct {
	key    string
	client *http.Client

	stop    context.CancelFunc // ends the load
	writers sync.WaitGroup

	mu      sync.Mutex
	acked   sent
	unsure  sent
	scores  map[string]scored // by acked id
	loading int               // writers at work
	refusal string
}

// runOracle is the oracle's main: orders in, answers out, until the input ends.
func runOracle() {
	w := &witness{
		key:    os.Getenv("ORACLE_KEY"),
		client: &http.Client{Transport: Comparing(&http.Transport{MaxIdleConnsPerHost: 256})},
		stop:   func() {},
		acked:  sent{},
		unsure: sent{},
		scores: map[string]scored{},
	}

	out := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var o Order
		answer := Account{}
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			answer.Error = err.Error()
		} else {
			answer = w.obey(o)
		}
		if err := differences.first(); err != nil && answer.Error == "" {
			answer.Error = "the description of the API differs: " + err.Error()
		}
		if out.Encode(answer) != nil {
			return
		}
	}
}

func (w *witness) obey(o Order) Account {
	switch o.Do {
	case "load":
		w.load(o)
	case "halt":
		w.stop()
		w.writers.Wait()
	case "verify":
		return w.verify(o.Addr)
	case "count":
	default:
		return Account{Error: "unknown order " + o.Do}
	}

	return w.count()
}

func (w *witness) count() Account {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := Account{Acked: len(w.acked), Unsure: len(w.unsure), Loading: w.loading > 0, Refusal: w.refusal}
	for _, s := range w.scores {
		a.Scored += s.acked
	}
	for _, c := range w.acked {
		if c.span != nil {
			a.Spans++
		}
	}
	return a
}

func (w *witness) load(o Order) {
	w.stop()
	w.writers.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel

	w.mu.Lock()
	w.loading = o.Writers
	w.mu.Unlock()

	for range o.Writers {
		w.writers.Go(func() {
			for w.write(ctx, o) {
			}
			w.mu.Lock()
			w.loading--
			w.mu.Unlock()
		})
	}
}

// write sends one new request or a batch of new spans, and reports whether to go on.
func (w *witness) write(ctx context.Context, o Order) bool {
	w.mu.Lock()
	enough := o.Acks > 0 && len(w.acked) >= o.Acks
	w.mu.Unlock()
	if enough || ctx.Err() != nil {
		return false
	}

	var status int
	var err error
	if o.Spans > 0 && rand.IntN(o.Spans) == 0 {
		status, err = w.export(ctx, o)
	} else {
		status, err = w.request(ctx, o)
	}

	// Not as fast as the processor can: when the sidecar is away or full, and in short scenes,
	// whose cost is then that of their length.
	rests := o.Acks == 0 && os.Getenv(soakVariable) == ""
	if err != nil || status != http.StatusOK || rests {
		wait := time.NewTimer(5 * time.Millisecond)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	return true
}

// request sends one new request. Its id is never sent again: without an answer, nothing
// would tell how often it was taken.
func (w *witness) request(ctx context.Context, o Order) (status int, err error) {
	id := wire.NewID()
	url := "http://" + o.Addr + "/rest/track-request"
	status, answer, err := w.call(ctx, "POST", url, contentOf(id, o.Bytes), "")

	w.mu.Lock()
	if status == http.StatusOK {
		w.acked[id] = content{bytes: o.Bytes}
	} else {
		w.unsure[id] = content{bytes: o.Bytes}
		w.refusal = fmt.Sprintf("%d %.300s %v", status, answer, err)
	}
	w.mu.Unlock()

	if status == http.StatusOK && o.Also != "" {
		w.score(ctx, o, id)
	}

	return status, err
}

// score scores a request at both sidecars in turn.
func (w *witness) score(ctx context.Context, o Order, id string) {
	for value := 1; value <= scoresMax && ctx.Err() == nil; value++ {
		addr := o.Addr
		if value%2 == 1 {
			addr = o.Also
		}
		body := fmt.Appendf(nil, `{"request_id":%q,"score":%d}`, id, value)
		status, _, _ := w.call(ctx, "POST", "http://"+addr+"/rest/track-score", body, "")

		w.mu.Lock()
		s := w.scores[id]
		if status == http.StatusOK {
			s.acked++
			s.last = value
		} else {
			s.unsure++
		}
		w.scores[id] = s
		w.mu.Unlock()
	}
}

// call makes a call with a body of a Content-Type; "" names none.
func (w *witness) call(ctx context.Context, method, url string, body []byte, form string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-API-KEY", w.key)
	if form != "" {
		req.Header.Set("Content-Type", form)
	}
	res, err := w.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()

	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

const (
	verifiersMax = 8
	namedMax     = 50 // ids of each kind that an account names
)

// verify reads every id from a server.
func (w *witness) verify(addr string) Account {
	a := w.count()
	w.mu.Lock()
	acked, all := maps.Clone(w.acked), maps.Clone(w.acked)
	maps.Copy(all, w.unsure)
	scores := maps.Clone(w.scores)
	w.mu.Unlock()

	ids := make(chan string)
	var readers sync.WaitGroup
	var mu sync.Mutex
	for range verifiersMax {
		readers.Go(func() {
			for id := range ids {
				found, err := w.look(addr, id, all[id], scores[id])
				_, wasAcked := acked[id]
				mu.Lock()
				a.note(id, wasAcked, found, err)
				mu.Unlock()
			}
		})
	}
	for id := range all {
		ids <- id
	}
	close(ids)
	readers.Wait()

	return a
}

// finding is what a server holds of an id.
type finding int

const (
	absent finding = iota
	asSent
	different
	twice
	older
)

var scoreIn = regexp.MustCompile(`"scores":\[\{"name":"default","score":(\d+)`)

func (w *witness) look(addr, id string, c content, scores scored) (finding, error) {
	if c.span != nil {
		return w.lookSpan(addr, id, c)
	}
	answer, err := w.read(addr, "/api/public/v2/requests/"+id)
	if answer == nil {
		return absent, err
	}
	// Found by its bytes, not decoded: the race detector makes decoding large records
	// take seconds.
	want := slices.Concat([]byte(`"request":`), contentOf(id, c.bytes), []byte(`,"events":[`))
	before, after, found := bytes.Cut(answer, want)
	if !found {
		return different, nil
	}

	score := 0
	if m := scoreIn.FindSubmatch(before); m != nil {
		score, _ = strconv.Atoi(string(m[1]))
	}
	arrived := []byte(`"arrived_at"`) // one for each event

	return scores.fits(bytes.Count(before, arrived)+bytes.Count(after, arrived), score), nil
}

// note adds the finding for one id to the account. An unsure id may be absent.
func (a *Account) note(id string, acked bool, f finding, err error) {
	name := func(list *[]string) {
		if len(*list) < namedMax {
			*list = append(*list, id)
		}
	}

	switch {
	case err != nil:
		a.Error = err.Error()
	case f == different:
		name(&a.Different)
	case f == twice:
		name(&a.Twice)
	case f == older:
		name(&a.Older)
	case acked && f == absent:
		a.Lost++
		name(&a.Missing)
	case acked:
		a.There++
	}
}
