package filter

import (
	"testing"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

func TestAFaultOfAFlagIsToldOnce(t *testing.T) {
	const want = `--status (or PROMPTSPOOL_STATUS): "x" is wrong: it takes one of: SUCCESS, WARNING, ERROR`
	err := (&cli.App{Commands: []*cli.Command{{Name: "search", Flags: Flags(), Action: func(c *cli.Context) error {
		v := config.Read(c)
		Read(v)
		return v.Err()
	}}}}).Run([]string{"promptspool", "search", "--status", "x"})
	if err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}
