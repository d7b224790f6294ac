package templates

import (
	"fmt"
	"strings"
	"testing"

	"promptspool/api/wire"
)

func TestAPageOfVersionsThatDoesNotExistIsTheLastOne(t *testing.T) {
	for latest, want := range map[int]string{0: "[]", 1: "[1]", 30: "[30 29", 31: "[1]", 61: "[1]"} {
		for _, page := range []string{
			"4", "614891469123651721", "9223372036854775807", "99999999999999999999",
		} {
			v := templateView{templateHead: templateHead{
				Template: wire.Template{Versions: make([]wire.Stamp, latest)},
			}}
			v.listVersions(page)
			var numbers []int
			for _, row := range v.Versions {
				numbers = append(numbers, row.Number)
			}
			if got := fmt.Sprint(numbers); !strings.HasPrefix(got, want) || v.Older != "" {
				t.Errorf("page %s of %d versions shows %s, then %q; want %s",
					page, latest, got, v.Older, want)
			}
		}
	}
}
