package archive

import (
	"strings"
	"testing"
)

func TestAnIDIsReadInOneFormOnly(t *testing.T) {
	const usual = "01a1fcdb-6cb7-7ca5-a7cd-791d677e22cd"
	for _, form := range []string{usual, strings.ToUpper(usual)} {
		if id, ok := ParseUUID(form); !ok || id.String() != usual {
			t.Errorf("%s is read as %s, %v", form, id, ok)
		}
	}

	for _, other := range []string{
		"", "urn:uuid:" + usual, "{" + usual + "}", strings.ReplaceAll(usual, "-", ""), usual[:35], usual[:35] + "g",
		"01a1fcdb6-cb7-7ca5-a7cd-791d677e22cd", "----01a1fcdb6cb77ca5a7cd791d677e22cd",
	} {
		if id, ok := ParseUUID(other); ok {
			t.Errorf("%q is read as %s", other, id)
		}
	}
}
