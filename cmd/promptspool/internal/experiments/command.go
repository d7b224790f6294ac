package experiments

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/machine"
)

// errLeft means that a process ended without an error, and without an answer.
var errLeft = errors.New("it ended without an answer")

// process is a command of the user's that answers lines. It is started when it is needed, and again once
// it has ended or was at fault. It is for one caller at a time.
type process struct {
	args    []string
	timeout time.Duration

	input    io.WriteCloser // nil while it does not run
	lines    chan []byte
	wait     func() error
	kill     func()
	answered bool
}

// ask gives the process a line, and returns the line that it answers, which must have the same id.
func (p *process) ask(id string, line any) (json.RawMessage, error) {
	text, err := json.Marshal(line)
	if err != nil {
		return nil, err
	}
	if p.input == nil {
		if err := p.start(); err != nil {
			return nil, err
		}
	}

	answered := p.answered
	answer, err := p.exchange(id, append(text, '\n'))
	if err == nil {
		return answer, nil
	}
	// A late answer to this line must not be taken for one to the next.
	p.stop()
	if err == errLeft && answered {
		// It takes one line, and this was the second.
		return p.ask(id, line)
	}

	return nil, err
}

func (p *process) start() error {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	machine.KillWhole(cmd)
	cmd.WaitDelay, cmd.Stderr = time.Second, os.Stderr
	input, err := cmd.StdinPipe()
	output, failed := cmd.StdoutPipe()
	err = errors.Join(err, failed)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return err
	}

	lines := make(chan []byte)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(output)
		scanner.Buffer(nil, wire.BatchBodyBytesMax)
		for scanner.Scan() {
			select {
			case lines <- bytes.Clone(scanner.Bytes()):
			case <-ctx.Done():
				return
			}
		}
	}()
	p.input, p.lines, p.wait, p.kill, p.answered = input, lines, cmd.Wait, cancel, false

	return nil
}

// exchange writes a line and reads the next one.
func (p *process) exchange(id string, line []byte) (json.RawMessage, error) {
	// A process that reads nothing must not hold us. The write ends with the process.
	go func(input io.Writer) { _, _ = input.Write(line) }(p.input)
	late := time.AfterFunc(p.timeout, p.kill)
	answer, open := <-p.lines
	inTime := late.Stop()

	var named struct{ ID string }
	switch {
	case !inTime:
		return nil, fmt.Errorf("no answer within %v", p.timeout)
	case !open:
		defer time.AfterFunc(p.timeout, p.kill).Stop()
		if err := p.wait(); err != nil {
			return nil, fmt.Errorf("it ended without an answer: %w", err)
		}
		return nil, errLeft
	case json.Unmarshal(answer, &named) != nil:
		return nil, fmt.Errorf("its answer is not JSON: %s", shown(answer))
	case named.ID != id:
		return nil, fmt.Errorf("its answer does not have the id of the line, %s: %s", id, shown(answer))
	}
	p.answered = true

	return answer, nil
}

// stop ends the process, if it runs.
func (p *process) stop() {
	if p.input != nil {
		_ = p.input.Close()
		p.kill()
		_ = p.wait()
		p.input = nil
	}
}

// shown returns the beginning of a text, for a message.
func shown(text []byte) string { return strings.ToValidUTF8(string(text[:min(len(text), 200)]), "") }
