package experiments

import (
	"bufio"
	"cmp"
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

const concurrencyMax = 100

// errLeft means that a process ended without an error, and without an answer.
var errLeft = errors.New("the command ended without an answer")

// command is a command of the user's. Its processes answer line after line. It is safe for concurrent use.
type command struct {
	args    []string
	timeout time.Duration
	idle    chan *process
}

type process struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines *bufio.Scanner
}

func newCommand(args []string, timeout time.Duration) command {
	return command{args, timeout, make(chan *process, concurrencyMax)}
}

// ask gives a process a line, and decodes the line that it answers, which must have the same id.
func (c *command) ask(id string, line, answer any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	var p *process
	select {
	case p = <-c.idle:
		err = p.exchange(c.timeout, id, text, answer)
	default:
		err = errLeft
	}
	// A process may take one line alone.
	if err == errLeft {
		p, err = c.start()
		if err != nil {
			return err
		}
		err = p.exchange(c.timeout, id, text, answer)
	}

	if err != nil {
		// A late answer to this line must not be taken for one to the next.
		p.stop()
		return err
	}
	c.idle <- p
	return nil
}

func (c *command) start() (*process, error) {
	cmd := exec.CommandContext(context.Background(), c.args[0], c.args[1:]...)
	cmd.WaitDelay, cmd.Stderr = time.Second, os.Stderr
	machine.KillWhole(cmd)
	input, err := cmd.StdinPipe()
	output, failed := cmd.StdoutPipe()
	err = cmp.Or(err, failed)
	if err == nil {
		err = cmd.Start()
	}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, wire.BatchBodyBytesMax)

	return &process{cmd, input, lines}, err
}

// exchange writes a line and reads the next one.
func (p *process) exchange(timeout time.Duration, id string, line []byte, answer any) error {
	// A process that reads nothing must not hold us. The write ends with the process.
	go func() { _, _ = p.input.Write(line) }()
	late := time.AfterFunc(timeout, func() { _ = p.cmd.Cancel() })
	var ended error
	if !p.lines.Scan() {
		ended = errLeft
		if err := p.cmd.Wait(); err != nil {
			ended = fmt.Errorf("%w: %w", errLeft, err)
		}
	}
	if !late.Stop() {
		return fmt.Errorf("the command gave no answer within %v", timeout)
	}
	if ended != nil {
		return ended
	}

	var named struct{ ID string }
	said := p.lines.Bytes()
	err := json.Unmarshal(said, &named)
	if err == nil && named.ID != id {
		err = errors.New("it does not have the id of the line, " + id)
	}
	if err == nil {
		err = json.Unmarshal(said, answer)
	}
	if err != nil {
		beginning := strings.ToValidUTF8(string(said[:min(len(said), 200)]), "")
		err = fmt.Errorf("the command's answer is %s: %w", beginning, err)
	}
	return err
}

// stop ends the process.
func (p *process) stop() {
	_ = p.input.Close()
	_ = p.cmd.Cancel()
	_ = p.cmd.Wait()
}

// stop ends the processes. None is asked any more.
func (c *command) stop() {
	close(c.idle)
	for p := range c.idle {
		p.stop()
	}
}
