package filter

import (
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
