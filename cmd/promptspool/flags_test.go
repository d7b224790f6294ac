package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

// within runs f inside a command with these flags, called with these arguments.
func within(t *testing.T, flags []cli.Flag, args []string, f func(*cli.Context)) {
	t.Helper()
	app := newApp(&bytes.Buffer{}, &bytes.Buffer{})
	ran := false
	probe := &cli.Command{Name: "probe", Flags: flags, Action: func(c *cli.Context) error {
		ran = true
		f(c)
		return nil
	}}

	prepare(probe, "up")
	app.Commands = append(app.Commands, probe)
	err := app.RunContext(context.Background(), append([]string{"promptspool", "probe"}, args...))
	if err != nil || !ran {
		t.Fatalf("%q: %v", args, err)
	}
}

func TestAFlagSetToNothingMeansItsDefault(t *testing.T) {
	withoutVariables(t)
	flags := func() []cli.Flag { return config.ListenFlags("127.0.0.1:1", "127.0.0.1:2") }

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
			within(t, flags(), tt.args, func(c *cli.Context) {
				Equal(t, "--listen", config.Read(c).Text("listen"), tt.want)
			})
		})
	}
}

func TestSizes(t *testing.T) {
	for value, want := range map[string]int64{
		"64MiB": 64 << 20, "8GB": 8e9, "1": 1, "1.5 KiB": 1536, "": 7, "4EiB": 4 << 60,
		"0": 0, "-1": 0, "many": 0, "8XB": 0, "0.1B": 0, "16EiB": 0, "NaN": 0, "1e30": 0,
	} {
		flags := []cli.Flag{config.TextFlag("size", "7", "the size")}
		within(t, flags, []string{"--size", value}, func(c *cli.Context) {
			r := config.Read(c)
			got := r.Size("size")
			err := r.Err()
			if got != want || (err == nil) != (want > 0) {
				t.Errorf("%q is %d, %v; want %d", value, got, err, want)
			}
		})
	}
}

func TestDurations(t *testing.T) {
	const none = time.Duration(-1)
	for value, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "0": 0, "0s": 0, "": time.Minute,
		"90d": 90 * 24 * time.Hour,
		"5":   none, "-1s": none, "soon": none, "9999999h": none, "9999999d": none,
	} {
		flags := []cli.Flag{config.TextFlag("time", "1m", "the time")}
		within(t, flags, []string{"--time", value}, func(c *cli.Context) {
			r := config.Read(c)
			got := r.Duration("time")
			err := r.Err()
			if err != nil {
				got = none
			}
			Equal(t, "duration "+value, got, want)
		})
	}
}

func TestCounts(t *testing.T) {
	for value, want := range map[string]int{
		"1": 1, "10": 10, "": 0, "0": -1, "11": -1, "-1": -1, "1.5": -1, "x": -1, "99999999999999999999": -1,
	} {
		flags := []cli.Flag{config.TextFlag("limit", "", "the limit")}
		within(t, flags, []string{"--limit", value}, func(c *cli.Context) {
			r := config.Read(c)
			got := r.Count("limit", 10)
			err := r.Err()
			if err != nil {
				got = -1
			}
			Equal(t, "count "+value, got, want)
		})
	}
}

func TestRequired(t *testing.T) {
	flags := func() []cli.Flag { return []cli.Flag{config.TextFlag("data", "", "the `folder`")} }
	within(t, flags(), []string{"--data", "d"}, func(c *cli.Context) {
		r := config.Read(c)
		Equal(t, "data", []any{r.Required("data"), r.Err()}, []any{"d", nil})
	})
	within(t, flags(), []string{"--data", ""}, func(c *cli.Context) {
		r := config.Read(c)
		if got := r.Required("data"); r.Err() == nil {
			t.Errorf("a flag without a value is %q", got)
		}
	})
}

func TestListsKeepTheirCommas(t *testing.T) {
	flags := func() []cli.Flag { return []cli.Flag{config.ListFlag("tag", "a tag")} }
	within(t, flags(), []string{"--tag", "a,b", "--tag", "", "--tag", "c"}, func(c *cli.Context) {
		Equal(t, "tags", config.Read(c).List("tag"), []string{"a,b", "c"})
	})
	t.Setenv("PROMPTSPOOL_TAG", "a,b")
	within(t, flags(), nil, func(c *cli.Context) {
		Equal(t, "tags of the variable", config.Read(c).List("tag"), []string{"a,b"})
	})
	t.Setenv("PROMPTSPOOL_TAG", "")
	within(t, flags(), nil, func(c *cli.Context) {
		Equal(t, "tags of an empty variable", config.Read(c).List("tag"), []string{})
	})
}

func TestHosts(t *testing.T) {
	flags := func() []cli.Flag { return []cli.Flag{config.ListFlag("allow-host", "a host")} }
	within(t, flags(), []string{"--allow-host", "A.example", "--allow-host", " b , c,,"}, func(c *cli.Context) {
		Equal(t, "hosts", config.Read(c).Hosts("allow-host"), []string{"a.example", "b", "c"})
	})
	within(t, flags(), nil, func(c *cli.Context) {
		Equal(t, "no hosts", config.Read(c).Hosts("allow-host"), []string(nil))
	})
}
