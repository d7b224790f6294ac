//go:build linux && bench

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/cmd/promptspool/e2e/harness"
)

// pressure is a load as hard as the other side bears: each connection sends its next
// write after the last answer.
type pressure struct {
	Addr        string        `json:"addr"`
	Connections int           `json:"connections"`
	Bytes       int           `json:"bytes"`      // of a body
	Path        string        `json:"path"`       // of the call; "" for a write, whose body Bytes makes
	Body        []byte        `json:"body"`       // with Path
	Time        time.Duration `json:"time"`       // at most
	Requests    int64         `json:"requests"`   // at most
	PerSecond   float64       `json:"per_second"` // at an even pace, as far as the connections suffice; 0: unpaced
}

// pace is the result of a pressure.
type pace struct {
	Requests  int64         `json:"requests"` // answered 200
	Failed    int64         `json:"failed"`   // answered otherwise, or not at all
	PerSecond float64       `json:"per_second"`
	P50       time.Duration `json:"p50"`
	P99       time.Duration `json:"p99"`
	Failure   string        `json:"failure"` // one of them
}

// press runs a pressure in a process of its own, so that whatever is pressed meets the
// same one.
func press(b *testing.B, p pressure) pace {
	b.Helper()
	got, err := tryPress(p)
	if err != nil {
		b.Fatal(err)
	}
	return got
}

func tryPress(p pressure) (got pace, err error) {
	order, err := json.Marshal(p)
	if err != nil {
		return got, err
	}

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), harness.HelperVariable+"=pressure", "PRESSURE="+string(order))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil {
		return got, fmt.Errorf("the load: %w", err)
	}
	if got.Requests == 0 || got.Failed > 0 {
		return got, fmt.Errorf("of the load %d failed and %d succeeded; one failure: %s",
			got.Failed, got.Requests, got.Failure)
	}
	return got, nil
}

// runPressure is the process that press starts.
func runPressure() {
	var p pressure
	if err := json.Unmarshal([]byte(os.Getenv("PRESSURE")), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(p.run())
}

func (p pressure) run() pace {
	client := &fasthttp.HostClient{
		Addr:                      p.Addr,
		MaxConns:                  p.Connections,
		MaxIdemponentCallAttempts: 1,
		ReadTimeout:               time.Minute,
		WriteTimeout:              time.Minute,
	}

	path, body := p.Path, p.Body
	if path == "" {
		path, body = "/rest/track-request", harness.BodyOf(p.Bytes)
	}

	var tickets atomic.Int64
	var all []time.Duration
	var got pace
	var mu sync.Mutex // of all and got
	var connections sync.WaitGroup

	begun := time.Now()
	for range p.Connections {
		connections.Go(func() {
			req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			req.SetRequestURI("http://" + p.Addr + path)
			req.Header.SetMethod("POST")
			req.Header.Set("X-API-KEY", harness.AdminKey)
			req.SetBodyRaw(body)

			var times []time.Duration
			var failed int64
			var failure string

			for ticket := tickets.Add(1); ticket <= p.Requests && time.Since(begun) < p.Time; ticket = tickets.Add(1) {
				if p.PerSecond > 0 {
					turn := time.Duration(float64(ticket) / p.PerSecond * float64(time.Second))
					harness.PauseFor(time.Until(begun.Add(turn)))
				}
				start := time.Now()
				if err := client.Do(req, res); err != nil || res.StatusCode() != 200 {
					failed++
					failure = fmt.Sprintf("%v %d %.200s", err, res.StatusCode(), res.Body())
					if failed > 10 {
						break
					}
					continue
				}
				times = append(times, time.Since(start))
			}

			mu.Lock()
			defer mu.Unlock()
			all = append(all, times...)
			got.Failed += failed
			got.Failure = max(got.Failure, failure)
		})
	}
	connections.Wait()

	if len(all) == 0 {
		return got
	}
	got.Requests, got.PerSecond = int64(len(all)), float64(len(all))/time.Since(begun).Seconds()
	slices.Sort(all)
	got.P50, got.P99 = all[len(all)/2], all[len(all)*99/100]
	return got
}
