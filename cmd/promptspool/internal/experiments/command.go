package experiments

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/machine"
)

// errLeft means that a process ended without an error, and without an answer.
var errLeft = errors.New("it ended without an answer")

// shownMax is how much of what a process printed a message shows.
const shownMax = 200

// process is a command of the user's that answers lines. It is started when it is needed, and again once
// it has ended or was at fault. It is for one caller at a time.
type process struct {
	args    []string
	timeout time.Duration

	input    io.WriteCloser
	lines    chan printed
	end      func() error // kills it, and returns how it ended
	cancel   func()
	answered bool
}

// printed is a line that a process has printed, or why it could not be read.
type printed struct {
	line []byte
	err  error
}

// ask gives the process a line, and returns the line that it answers, which must have the same id.
func (p *process) ask(id string, line any) (answer json.RawMessage, err error) {
	text, err := json.Marshal(line)
	if err != nil {
		return nil, err
	}
	for {
		if p.input == nil {
			if err := p.start(); err != nil {
				return nil, err
			}
		}
		answered := p.answered
		answer, err = p.exchange(id, append(text, '\n'))
		if err == nil {
			return answer, nil
		}

		// A late answer to this line must not be taken for one to the next.
		p.stop()
		if err != errLeft || !answered {
			return nil, err
		}
		// It takes one line, and this was the second.
	}
}

func (p *process) start() error {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	machine.KillWhole(cmd)
	cmd.WaitDelay = time.Second
	complaints := new(tail)
	cmd.Stderr = complaints
	input, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return err
	}
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return err
	}

	lines := make(chan printed)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(output)
		scanner.Buffer(nil, wire.BatchBodyBytesMax)
		for more := true; more; {
			more = scanner.Scan()
			line := printed{bytes.Clone(scanner.Bytes()), scanner.Err()}
			if !more && line.err == nil {
				return
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	p.input, p.lines, p.cancel, p.answered = input, lines, cancel, false
	p.end = func() error { return complaints.explain(cmd.Wait()) }

	return nil
}

// exchange writes a line and reads the next one.
func (p *process) exchange(id string, line []byte) (json.RawMessage, error) {
	// A process that reads nothing must not hold us. The write ends with the process.
	go func(input io.Writer) { _, _ = input.Write(line) }(p.input)
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil, fmt.Errorf("no answer within %v", p.timeout)
	case answer, open := <-p.lines:
		if !open {
			late := time.AfterFunc(p.timeout, p.cancel)
			defer late.Stop()
			if err := p.end(); err != nil {
				return nil, err
			}
			return nil, errLeft
		}
		if answer.err != nil {
			return nil, fmt.Errorf("its answer cannot be read: %w", answer.err)
		}
		var named struct{ ID string }
		if err := json.Unmarshal(answer.line, &named); err != nil {
			return nil, fmt.Errorf("its answer is not JSON: %s", shown(answer.line))
		}
		if named.ID != id {
			return nil, fmt.Errorf("its answer does not have the id of the line, %s: %s", id, shown(answer.line))
		}
		p.answered = true

		return answer.line, nil
	}
}

// stop ends the process, if it runs.
func (p *process) stop() {
	if p.input == nil {
		return
	}
	_ = p.input.Close()
	p.cancel()
	_ = p.end()
	p.input = nil
}

func shown(text []byte) string {
	return strings.ToValidUTF8(string(text[:min(len(text), shownMax)]), "")
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

// Write keeps the end of the text.
func (t *tail) Write(text []byte) (int, error) {
	t.kept = append(t.kept, text...)
	t.kept = t.kept[max(0, len(t.kept)-shownMax):]
	return len(text), nil
}

// explain adds the last of the text to an error.
func (t *tail) explain(err error) error {
	if last := strings.TrimSpace(string(t.kept)); err != nil && last != "" {
		return fmt.Errorf("%w: %s", err, strings.ToValidUTF8(last, ""))
	}
	return err
}
