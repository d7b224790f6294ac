package seed

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"time"
)

// pinned adds the calls that scenes count on.
func (m *maker) pinned() {
	yesterday := m.today.Add(-day)
	for n := range YesterdayFailed + 14 {
		c := m.triage(yesterday.Add(9*time.Hour + time.Duration(n)*19*time.Minute))
		c.renders(m.template("support/triage"), 3)
		c.fixed = true
		if n < YesterdayFailed {
			c.model, c.took = named("gpt-5-mini"), 30*time.Second
			c.failure = timeout
		}
	}

	outage := m.today.Add(-OutageDays*day + 14*time.Hour)
	for n := range OutageFailed {
		at := outage.Add(time.Duration(n) * 50 * time.Second)
		s := m.newSession(n+talkUser, n+talkUser+1) // the same users as in these sessions
		c := m.add(s, "support/reply", at, []message{{role: "user", text: s.fill(talks[n%6].turns[0].asked)}},
			message{text: s.fill(talks[n%6].turns[0].answered)})
		c.model, c.fixed, c.failure = named("claude-sonnet-4-5"), true, overloaded
		c.took = time.Duration(300+m.IntN(500)) * time.Millisecond
	}

	for n := range PhraseAnswers {
		answer := fmt.Sprintf("Meet Ella, the softest %s in town: %d cm tall, washable at 30 °C.", Phrase, 20+5*n)
		asked := message{text: "Product: toy elephant\nColour: purple"}
		m.addJob("shop/description", m.moment(), asked, answer).fixed = true
	}
	slowest := m.handbook(m.today.Add(-4*day + 11*time.Hour))
	slowest.took, slowest.fixed = 124_600*time.Millisecond, true
	for n := range 8 { // the last hour is never empty
		m.triage(m.now.Add(-time.Duration(3+6*n) * time.Minute)).fixed = true
	}
}

// lone adds a call that belongs to no conversation.
func (m *maker) lone() {
	at := m.moment()
	switch n := m.IntN(100); {
	case n < 5:
		m.handbook(at)
	case n < 9:
		m.photo(at)
	case n < 30:
		m.mail(at)
	case n < 50:
		m.judge(at)
	case n < 90:
		m.describe(at, items[m.IntN(len(items))])
	case n < 92:
		m.digest(at)
	default:
		m.triage(at)
	}
}

// job returns what calls have in common that no user waits for.
func (m *maker) job() sessionFacts {
	return sessionFacts{customer: customers[min(m.IntN(8), m.IntN(8))], fill: m.filled()}
}

// addJob adds a call without a user and a session.
func (m *maker) addJob(name string, at time.Time, asked message, answer string) *call {
	asked.role = "user"
	c := m.add(m.job(), name, at, []message{asked}, message{text: answer})
	delete(c.metadata, "session_id")
	delete(c.metadata, "user_id")

	return c
}

// triage adds a call that sorts a first message.
func (m *maker) triage(at time.Time) *call {
	t := talks[m.IntN(len(talks))]
	verdict := fmt.Sprintf(`{"topic": %q, "urgency": %d, "language": %q}`, t.topic, 1+m.IntN(3), t.language)

	return m.addJob("support/triage", at, message{text: m.filled()(t.turns[0].asked)}, verdict)
}

// describe adds a call that describes a product, or finds search terms for it.
func (m *maker) describe(at time.Time, item string) {
	colours := []string{"blue", "green", "purple", "red"}
	colour := colours[m.IntN(len(colours))]
	if m.IntN(4) == 0 {
		terms := strings.Join([]string{item, colour + " " + item, item + " sale", "best " + item, item + " gift"}, "\n")
		m.addJob("shop/search-terms", at, message{text: "Product: " + item + ", " + colour}, terms)
		return
	}

	const answer = "A %s made to last: light, quiet and easy to clean. Comes in %s, with a warranty of 24 months."
	m.addJob("shop/description", at, message{text: "Product: " + item + "\nColour: " + colour},
		fmt.Sprintf(answer, item, colour))
}

// mail adds a call that translates a mail, or rates its tone.
func (m *maker) mail(at time.Time) {
	t := talks[m.IntN(len(talks))]
	text := m.filled()(t.turns[0].asked + "\n" + t.turns[1].asked)
	if m.IntN(2) == 0 {
		m.addJob("mail/sentiment", at, message{text: text}, fmt.Sprintf(`{"tone": %.1f}`, m.Float64()*2-1))
		return
	}

	m.addJob("mail/translate", at, message{text: text},
		m.filled()("Where is my order {order}? I have been waiting for two weeks.\nDoes that include shipping?"))
}

// judge adds a call that judges a reply.
func (m *maker) judge(at time.Time) {
	t := talks[m.IntN(len(talks))]
	asked := message{text: "Customer: " + t.turns[0].asked + "\nReply: " + t.turns[0].answered}
	asked.text = m.filled()(asked.text)
	m.addJob("quality/tone", at, asked, "Yes. It apologizes once and gives a date.")
}

// photo adds a call with a picture.
func (m *maker) photo(at time.Time) {
	asked := message{text: "This is how it arrived 😢", png: picture(m.IntN(360))}
	m.addJob("support/photo", at, asked, "The lower left corner is dented, and the box is torn open along one side.")
}

// digest adds a call whose answer is a table.
func (m *maker) digest(at time.Time) {
	var tickets strings.Builder
	for n := range 40 {
		t := talks[m.IntN(len(talks))]
		fmt.Fprintf(&tickets, "%d. [%s] %s\n", n+1, t.topic, m.filled()(t.turns[0].asked))
	}

	const answer = "## The week\n\n| topic | tickets | share |\n|---|---:|---:|\n" +
		"| parcel | 18 | 45 % |\n| refund | 12 | 30 % |\n| other | 10 | 25 % |\n\n" +
		"**Cause:** one carrier skipped two pickups.\n\n" +
		"1. Ask the carrier for a report.\n2. Tell customers *before* they ask.\n"
	m.addJob("ops/weekly-digest", at, message{text: tickets.String()}, answer)
}

// handbook adds a call with a prompt of some 37 KB.
func (m *maker) handbook(at time.Time) *call {
	const size = 37_000
	var text strings.Builder
	for section := 1; text.Len() < size; section++ {
		fmt.Fprintf(&text, "## %d. %s\n\n", section, chapters[m.IntN(len(chapters))])
		fill := m.filled()
		for range 4 {
			text.WriteString(fill(sentences[m.IntN(len(sentences))]) + " ")
		}
		text.WriteString("\n\n")
	}

	fill := m.filled()
	const answer = "You can return the {item} within **30 days** (section 12, *Returns*):\n\n" +
		"- keep the box,\n- print the label,\n- hand it in at any shop in {city}.\n"
	c := m.addJob("support/handbook", at, message{text: text.String() + fill("\nQuestion: how do I return a {item}?")},
		fill(answer))
	c.tags = append(c.tags, "rag")

	return c
}

var (
	chapters  = []string{"Returns", "Warranty", "Shipping abroad", "Gift cards", "Repairs", "Complaints", "Invoices"}
	sentences = []string{
		"A {item} that was opened can still be returned if it was not used.",
		"Orders to {city} leave the warehouse before 15:00 and arrive on the next working day.",
		"Agents note the number of the order, such as {order}, in every reply.",
		"A repair is free within 24 months; after that the customer gets an estimate first.",
		"Shipping is refunded if the whole order comes back, and not if a part of it is kept.",
		"Whoever asks for a manager is connected to one, without a second question.",
	}
)

// picture returns a small PNG in base64.
func picture(hue int) string {
	img := image.NewNRGBA(image.Rect(0, 0, 96, 64))
	for y := range 64 {
		for x := range 96 {
			img.Set(x, y, color.NRGBA{uint8(x * 2), uint8(hue), uint8(y * 3), 255})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		panic("seed: " + err.Error())
	}

	return base64.StdEncoding.EncodeToString(out.Bytes())
}
