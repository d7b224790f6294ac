package edge

import (
	"net"
	"slices"
	"testing"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"

	"promptspool/metrics"
)

// silent is a connection that only notes whether it was cut.
type silent struct {
	net.Conn
	waiting
	wasCut bool
}

func (s *silent) cut() { s.wasCut = true }

// Whatever connections do, the one that is cut is the one that has kept us waiting longest, as a
// plain list of them says.
func TestTheOneThatIsCutIsTheOneThatWaitsLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 40).Draw(t, "most")
		c := NewConnections(most, metrics.New("sidecar", "test"))
		var open, line []*silent // line: those that wait, the longest first
		leaves := func(list *[]*silent, s *silent) {
			*list = slices.DeleteFunc(*list, func(other *silent) bool { return other == s })
		}

		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			what := rapid.IntRange(0, 9).Draw(t, "what")
			if what < 5 || len(open) == 0 {
				s := &silent{}
				var longest *silent
				if len(open) >= most && len(line) > 0 {
					longest = line[0]
				}
				if admitted := c.admit(s); admitted != (len(open) < most || longest != nil) {
					t.Fatalf("admitted is %v with %d open, %d of them waiting", admitted, len(open), len(line))
				} else if !admitted {
					continue
				}
				if longest != nil {
					if !longest.wasCut {
						t.Fatal("another one was cut than the one that waits longest")
					}
					leaves(&line, longest)
					leaves(&open, longest)
					c.state(longest, fasthttp.StateClosed)
				}
				open, line = append(open, s), append(line, s)
				continue
			}

			s := open[rapid.IntRange(0, len(open)-1).Draw(t, "who")]
			leaves(&line, s)
			switch what {
			case 5, 6:
				Answering(s)
			case 7:
				c.state(s, fasthttp.StateClosed)
				leaves(&open, s)
			default:
				c.state(s, []fasthttp.ConnState{fasthttp.StateActive, fasthttp.StateIdle}[what-8])
				line = append(line, s)
			}
		}

		for _, s := range open {
			if s.wasCut {
				t.Fatal("one that is open was cut")
			}
		}
	})
}
