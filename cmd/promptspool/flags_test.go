package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// within runs f inside a command that has these flags and was called with these arguments.
func within(t *testing.T, flags []cli.Flag, args []string, f func(*cli.Context)) {
	t.Helper()
	app := newApp(&bytes.Buffer{}, &bytes.Buffer{})
	ran := false
	probe := &cli.Command{Name: "probe", Flags: flags, Action: func(c *cli.Context) error {
		ran = true
		f(c)
		return nil
	}}
	prepare(probe)
	app.Commands = append(app.Commands, probe)
	if err := app.RunContext(context.Background(), append([]string{"promptspool", "probe"}, args...)); err != nil || !ran {
		t.Fatalf("%q: %v", args, err)
	}
}

func TestAFlagSetToNothingMeansItsDefault(t *testing.T) {
	withoutVariables(t)
	flags := func() []cli.Flag { return listenFlags("127.0.0.1:1", "127.0.0.1:2") }
	for _, tt := range []struct {
		variable string // "-" for unset
		args     []string
		want     string
	}{
		{"-", nil, "127.0.0.1:1"},
		{"", nil, "127.0.0.1:1"},
		{"", []string{"--listen", ""}, "127.0.0.1:1"}, // net.Listen would open every address
		{"h:1", nil, "h:1"},
		{"h:1", []string{"--listen", "h:2"}, "h:2"},
		{"h:1", []string{"--listen="}, "127.0.0.1:1"},
	} {
		t.Run("", func(t *testing.T) {
			if tt.variable != "-" {
				t.Setenv("PROMPTSPOOL_LISTEN", tt.variable)
			}
			within(t, flags(), tt.args, func(c *cli.Context) { equal(t, "--listen", text(c, "listen"), tt.want) })
		})
	}
}

func TestSizes(t *testing.T) {
	for value, want := range map[string]int64{
		"64MiB": 64 << 20, "8GB": 8e9, "1": 1, "1.5 KiB": 1536, "": 7, "4EiB": 4 << 60,
		"0": 0, "-1": 0, "many": 0, "8XB": 0, "0.1B": 0, "16EiB": 0, "NaN": 0, "1e30": 0,
	} {
		within(t, []cli.Flag{stringFlag("size", "7", "the size")}, []string{"--size", value}, func(c *cli.Context) {
			got, err := size(c, "size")
			if got != want || (err == nil) != (want > 0) {
				t.Errorf("%q is %d, %v; want %d", value, got, err, want)
			}
		})
	}
}

func TestDurations(t *testing.T) {
	const none = time.Duration(-1)
	for value, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "0": 0, "0s": 0, "": time.Minute, "5": none, "-1s": none, "soon": none, "9999999h": none,
	} {
		within(t, []cli.Flag{stringFlag("time", "1m", "the time")}, []string{"--time", value}, func(c *cli.Context) {
			got, err := duration(c, "time")
			if err != nil {
				got = none
			}
			equal(t, "duration "+value, got, want)
		})
	}
}

func TestCounts(t *testing.T) {
	for value, want := range map[string]int{"1": 1, "10": 10, "": 0, "0": -1, "11": -1, "-1": -1, "1.5": -1, "x": -1, "99999999999999999999": -1} {
		within(t, []cli.Flag{stringFlag("limit", "", "the limit")}, []string{"--limit", value}, func(c *cli.Context) {
			got, err := count(c, "limit", 10)
			if err != nil {
				got = -1
			}
			equal(t, "count "+value, got, want)
		})
	}
}

func TestNeed(t *testing.T) {
	flags := func() []cli.Flag { return []cli.Flag{stringFlag("data", "", "the `folder`")} }
	within(t, flags(), []string{"--data", "d"}, func(c *cli.Context) {
		got, err := need(c, "data")
		equal(t, "data", []any{got, err}, []any{"d", nil})
	})
	within(t, flags(), []string{"--data", ""}, func(c *cli.Context) {
		if got, err := need(c, "data"); err == nil {
			t.Errorf("a flag without a value is %q", got)
		}
	})
}

func TestListsKeepTheirCommas(t *testing.T) {
	flags := func() []cli.Flag { return []cli.Flag{listFlag("tag", "a tag")} }
	within(t, flags(), []string{"--tag", "a,b", "--tag", "", "--tag", "c"}, func(c *cli.Context) {
		equal(t, "tags", texts(c, "tag"), []string{"a,b", "c"})
	})
	t.Setenv("PROMPTSPOOL_TAG", "a,b")
	within(t, flags(), nil, func(c *cli.Context) { equal(t, "tags of the variable", texts(c, "tag"), []string{"a,b"}) })
	t.Setenv("PROMPTSPOOL_TAG", "")
	within(t, flags(), nil, func(c *cli.Context) { equal(t, "tags of an empty variable", texts(c, "tag"), []string{}) })
}

func TestHosts(t *testing.T) {
	flags := func() []cli.Flag { return []cli.Flag{listFlag("allow-host", "a host")} }
	within(t, flags(), []string{"--allow-host", "A.example", "--allow-host", " b , c,,"}, func(c *cli.Context) {
		equal(t, "hosts", hostsOf(c, "allow-host"), []string{"a.example", "b", "c"})
	})
	within(t, flags(), nil, func(c *cli.Context) { equal(t, "no hosts", hostsOf(c, "allow-host"), []string(nil)) })
}
