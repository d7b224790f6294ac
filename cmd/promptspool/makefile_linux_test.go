package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// typed returns a terminal at which somebody has typed a text.
func typed(t *testing.T, text string) *os.File {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	fd := int(keyboard.Fd())
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err == nil {
		_, err = keyboard.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })

	return terminal
}

// Nobody expects that tests install packages.
func TestMakeTestAsksOnATerminalBeforeItInstalls(t *testing.T) {
	t.Parallel()
	for answer, installs := range map[string]bool{"y\n": true, "n\n": false, "\n": false} {
		l := newLaptop(t, "0", "chromium-headless-shell")
		l.stub("apt-get", `echo "apt-get $*" >>"$CALLS"
			echo "#!/bin/bash" >"${0%/*}/chromium-headless-shell"
			chmod 755 "${0%/*}/chromium-headless-shell"`)
		code, out, calls := l.makesTestAt(typed(t, answer))
		if strings.Contains(calls, "apt-get install") != installs || (code == 0) != installs {
			t.Errorf("after %q the code is %d, and it calls:\n%s", answer, code, calls)
		}
		if !installs && lastLine(out) != "Left out: 1 of the tests. Missing: chromium" {
			t.Errorf("after %q the last line is %q", answer, lastLine(out))
		}
	}
}
