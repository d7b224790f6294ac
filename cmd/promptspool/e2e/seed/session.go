package seed

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

func digits(n int) string { return strconv.Itoa(n) }

// session adds the calls of a conversation.
func (m *maker) session(n int) {
	// The first sessions give each user one, the others are of users who come back.
	user := n + 1
	for user > Users || user == talkUser && n >= Users {
		user = 1 + m.IntN(Users)
	}

	s, at := m.newSession(n, user), m.moment()
	talk := m.talkOf(s.customer)
	if user == talkUser {
		at, talk = m.today.Add(-2*day+10*time.Hour), talks[0]
	}
	m.talk(s, talk, at)
}

// talkUser is the number in TalkUser, whose customer writes English.
const talkUser = 42

// sessionFacts are what all calls of a session have in common.
type sessionFacts struct {
	id, user, customer string
	fill               func(string) string
}

// newSession draws the facts of a session. A user stays with one customer.
func (m *maker) newSession(n, user int) sessionFacts {
	mixed := user * 29

	return sessionFacts{
		id:       fmt.Sprintf("s-%04d", 4000+n),
		user:     fmt.Sprint("user-", user),
		customer: customers[min(mixed%8, mixed/8%8)],
		fill:     m.filled(),
	}
}

// metadata returns the metadata of the session's calls.
func (s sessionFacts) metadata(m *maker) map[string]string {
	return map[string]string{
		"customer":    s.customer,
		"env":         []string{"production", "production", "production", "staging"}[len(s.user)%4],
		"session_id":  s.id,
		"user_id":     s.user,
		"app_version": fmt.Sprint("4.", 10+m.IntN(3)),
	}
}

// talk adds the calls of a talk, which begins at a time.
func (m *maker) talk(s sessionFacts, t talk, at time.Time) {
	first := s.fill(t.turns[0].asked)
	verdict := fmt.Sprintf(`{"topic": %q, "urgency": %d, "language": %q}`, t.topic, 1+m.IntN(3), t.language)
	m.add(s, "support/triage", at, []message{{role: "user", text: first}}, message{text: verdict})

	var said []message
	for _, turn := range t.turns {
		at = at.Add(time.Duration(20+m.IntN(100)) * time.Second)
		said = append(said, message{role: "user", text: s.fill(turn.asked)})

		template := "support/reply"
		if turn.looksUp {
			template = "support/agent"
			said = m.lookUp(s, at, said)
			at = at.Add(5 * time.Second)
		}
		answer := message{role: "assistant", text: s.fill(turn.answered)}
		m.add(s, template, at, said, answer)
		said = append(said, answer)
	}

	summary := fmt.Sprintf("The customer asked about a %s (%s); solved in %d turns.", t.topic, t.language, len(t.turns))
	m.add(s, "support/summarize", at.Add(time.Minute), transcript(said), message{text: summary})
}

// lookUp adds the call that asks for the tool, and returns what was said after the tool answered.
func (m *maker) lookUp(s sessionFacts, at time.Time, said []message) []message {
	tool := &toolCall{
		id:        fmt.Sprintf("call_%06x", m.Uint32()&0xffffff),
		name:      "track_parcel",
		arguments: s.fill(`{"order": "{order}"}`),
	}
	asks := message{role: "assistant", tool: tool}
	m.add(s, "support/agent", at, said, asks)
	found := message{role: "tool", tool: tool}
	found.text = s.fill(`{"order": "{order}", "city": "{city}", "state": "in transit"}`)

	return append(said, asks, found)
}

// transcript returns a conversation as the text of one message.
func transcript(said []message) []message {
	text := "Conversation:\n"
	for _, s := range said {
		if s.text != "" {
			text += s.role + ": " + s.text + "\n"
		}
	}

	return []message{{role: "user", text: text}}
}

// add adds a call of a session and returns it.
func (m *maker) add(s sessionFacts, name string, at time.Time, said []message, answer message) *call {
	t := m.template(name)
	version := m.version(t, at)
	answer.role = "assistant"

	c := &call{
		start:    at,
		model:    m.modelOf(t),
		messages: append([]message(nil), said...),
		answer:   answer,
		metadata: s.metadata(m),
		tags:     []string{"bot", []string{"web", "mobile"}[len(s.id+s.user)%2]},
	}
	c.renders(t, version)
	m.calls = append(m.calls, c)
	m.timed(c)

	return c
}

// modelOf returns the template's model, and for every fifth call another that is tried beside it.
func (m *maker) modelOf(t template) model {
	if m.IntN(5) == 0 {
		return models[m.IntN(len(models))]
	}

	return named(t.model)
}

// timed draws how long a call takes. Newer versions of a template are quicker; few calls take very long.
func (m *maker) timed(c *call) {
	in, out := c.tokens()
	took := 250*time.Millisecond + time.Duration(out)*c.model.perToken + time.Duration(in/20)*time.Millisecond
	took = time.Duration(float64(took) * (0.7 + m.ExpFloat64()*0.5))
	if m.IntN(100) == 0 {
		took += time.Duration(15+m.IntN(60)) * time.Second
	}
	c.took = took.Truncate(time.Millisecond)
	// Whatever is drawn, nothing is answered in the future.
	if late := c.ended().Sub(m.now); late > 0 {
		c.start = c.start.Add(-late)
	}
}

// moment draws a time of the last 30 days: there are more calls by day than by night, and more each week.
func (m *maker) moment() time.Time {
	for {
		ago := time.Duration(math.Pow(m.Float64(), 1.2) * float64(30*day-time.Hour))
		at := m.now.Add(-ago - time.Minute).Truncate(time.Millisecond)
		if hour := at.Hour(); (hour < 7 || hour > 21) && m.IntN(4) > 0 {
			continue
		}

		return at
	}
}
