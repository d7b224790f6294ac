package filter

import (
	"fmt"
	"testing"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

func TestAFaultOfAFlagIsToldOnce(t *testing.T) {
	const about = "--score (or PROMPTSPOOL_SCORE): "
	for value, want := range map[string]string{
		"x":    about + `"x" is not a range such as LOW..HIGH, LOW.. or ..HIGH`,
		"..":   about + `".." is not a range such as LOW..HIGH, LOW.. or ..HIGH`,
		"x..9": about + `"x..9" is wrong: it takes a number`,
	} {
		err := (&cli.App{Commands: []*cli.Command{{Name: "search", Flags: Flags(), Action: func(c *cli.Context) error {
			v := config.Read(c)
			Read(v)
			return v.Err()
		}}}}).Run([]string{"promptspool", "search", "--score", value})
		if err == nil || err.Error() != want {
			t.Errorf("--score %s: %v; want %s", value, err, want)
		}
	}
}

// A terminal shows the beginnings of traces' ids.
func TestATraceIsFoundByTheBeginningOfItsID(t *testing.T) {
	const whole = "4bf92f3577b34da6a3ce929d0e0e4736"
	for id, operator := range map[string]string{whole: "is", whole[:13]: "starts_with"} {
		want := fmt.Sprintf("trace_id %s %q", operator, id)
		err := (&cli.App{Commands: []*cli.Command{{Name: "search", Flags: Flags(), Action: func(c *cli.Context) error {
			_, selected := Read(config.Read(c))
			if got := fmt.Sprint(selected); got != want {
				t.Errorf("--trace %s selects %s, want %s", id, got, want)
			}
			return nil
		}}}}).Run([]string{"promptspool", "search", "--trace", id})
		if err != nil {
			t.Error(err)
		}
	}
}
