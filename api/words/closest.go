package words

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/xrash/smetrics"
)

// DidYouMean returns the end of a message about a value that is none of some: the closest one.
// It is empty if none is close.
func DidYouMean(value string, values []string) string {
	near := Closest(value, values)
	if len(near) == 0 {
		return ""
	}

	return "; did you mean " + near[0] + "?"
}

// closestMax bounds how many values Closest returns.
const closestMax = 3

// Closest returns the values closest to one, the closest first. These are the same in another case, then
// what begins alike, then what differs by a few letters. Blanks and punctuation do not count.
func Closest(value string, values []string) []string {
	value = plain(value)
	// A longer word may have more slips before it is another word.
	most := 1 + len(value)/4
	rank := make(map[string]int)
	for _, v := range values {
		lower := plain(v)
		if lower == value {
			rank[v] = 0
		} else if strings.HasPrefix(lower, value) || len(lower) > 2 && strings.HasPrefix(value, lower) {
			rank[v] = 1
		} else if d := slips(value, lower); d <= most {
			rank[v] = 1 + d
		}
	}

	var near []string
	for _, v := range values {
		if _, ok := rank[v]; ok {
			near = append(near, v)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })

	return near[:min(len(near), closestMax)]
}

// slips counts the letters that differ. Two in each other's place are one slip.
func slips(a, b string) int {
	d := smetrics.WagnerFischer(a, b, 1, 1, 1)
	if d == 2 && slices.Equal(slices.Sorted(strings.SplitSeq(a, "")), slices.Sorted(strings.SplitSeq(b, ""))) {
		d = 1
	}

	return d
}

// plain returns the letters and digits of a text in lower case or, if it has none, the text.
func plain(text string) string {
	letters := strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, text)

	return cmp.Or(letters, strings.ToLower(text))
}
