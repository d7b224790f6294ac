package seed

import "strings"

// talk is a conversation with the bot. Texts have slots: {order}, {item}, {city} and {name}.
type talk struct {
	language string
	customer string // whose users speak so; "" for those of the others
	topic    string
	turns    []turn
}

// turn is what a customer wrote and what the bot answered.
type turn struct {
	asked, answered string
	looksUp         bool // with the tool, first
}

var talks = []talk{
	{"en", "", "parcel", []turn{
		{"Hi! Where is my order {order}? It should have been here on Monday.",
			"Hello {name}, I am sorry about the wait. Order {order} left our warehouse and is on its way to {city}. " +
				"It arrives tomorrow before noon.", true},
		{"Tomorrow I am not at home. Can you leave it with a neighbour?",
			"Yes. I have noted “neighbour” for the driver, {name}. You will find a card in your mailbox.", false},
		{"Great. Do I have to sign anything?",
			"No signature is needed for parcels below 200 €.", false},
		{"And if the {item} is damaged?",
			"Then send us a photo within 14 days, and we replace the {item} free of charge. " +
				"You keep the old one.", false},
		{"Thanks, that was quick 👍", "You are welcome, {name}! 😊", false},
	}},
	{"en", "", "refund", []turn{
		{"I returned the {item} two weeks ago and still have no money back. Order {order}.",
			"I have found your return of order {order}. It was received on the 3rd; the refund was started " +
				"today and takes **two to four** working days.", true},
		{"Why only today??",
			"You are right to ask. The return had no number on it, so a colleague had to match it by hand. " +
				"I am sorry.", false},
		{"Will the shipping be refunded too?",
			"Yes:\n\n| part | amount |\n|---|---|\n| {item} | 49.90 € |\n| shipping | 4.90 € |\n" +
				"| **sum** | **54.80 €** |", false},
	}},
	{"en", "", "exchange", []turn{
		{"the {item} is too small, can i swap it for the next size",
			"Of course. The next size is in stock. I have made an exchange for order {order}; " +
				"the label is in your mail.", false},
		{"how long do i have", "30 days from today.", false},
		{"ok and can i bring it to the shop in {city} instead?",
			"Yes, the shop in {city} takes exchanges too. Bring the confirmation of order {order}.", false},
		{"perfect", "See you in {city}!", false},
	}},
	{"en", "", "api", []turn{
		{"Your webhook sends me order {order} twice. How do I recognise the second one?",
			"Both have the same `delivery_id`. Keep those you have seen:\n\n```python\ndef handle(event):\n    " +
				"if seen(event[\"delivery_id\"]):\n        return 200\n    save(event)\n```\n\n" +
				"Answer the second one with 200 as well, or we send it again.", false},
		{"And how long do you retry?", "For 24 hours: after 1, 5, 30 and 60 minutes, then every 4 hours.", false},
		{"Can I get a signature on it?",
			"Yes, in `X-Signature`: an HMAC-SHA256 of the body with your secret.\n\n```json\n{\"delivery_id\": " +
				"\"dl_77\", \"order\": \"{order}\"}\n```", false},
	}},
	{"en", "", "account", []turn{
		{"I can't log in any more, it says my account is locked.",
			"I see three wrong passwords from {city} this morning, {name}. Was that you?", false},
		{"yes, sorry. my cat was on the keyboard 🐈",
			"No harm done. I have unlocked the account. Please use the link in your mail within an hour.", false},
		{"it works, thank you!!", "Happy to help, {name}. Greetings to the cat 🐾", false},
	}},
	{"en", "", "warranty", []turn{
		{"My {item} stopped working after 13 months. Is there anything you can do?",
			"The {item} has a warranty of 24 months, so yes. I need the order number and one sentence about the fault.",
			false},
		{"Order {order}, it does not switch on.",
			"Thank you. I have opened repair R-{order}. A courier picks it up in {city} on Thursday.", true},
		{"Can I have a replacement meanwhile? I need it every day.",
			"I can lend you one from the shop in {city}. Shall I reserve it?", false},
		{"Yes please.", "Reserved until Friday. Bring your passport, {name}.", false},
	}},
	{"ja", "Kawa", "parcel", []turn{
		{"注文{order}はいつ届きますか？", "お問い合わせありがとうございます。ご注文{order}は明日の午前中にお届けする予定です。", true},
		{"不在の場合はどうなりますか？", "不在の場合は宅配ボックスにお入れします。ご指定がなければ翌日に再配達いたします。", false},
		{"わかりました。ありがとうございます。", "ご利用ありがとうございました。またのご連絡をお待ちしております。", false},
	}},
	{"ar", "Sahara", "refund", []turn{
		{"أين المبلغ المسترد للطلب {order}؟ انتظرت أسبوعين.",
			"نعتذر عن التأخير. بدأنا اليوم رد مبلغ الطلب {order}، وسيصل إلى حسابك خلال ثلاثة أيام عمل.", true},
		{"هل يشمل ذلك رسوم الشحن؟", "نعم، يشمل رسوم الشحن كاملة (4.90 €).", false},
		{"شكراً جزيلاً", "على الرحب والسعة 🌙", false},
	}},
	{"he", "Galil", "exchange", []turn{
		{"שלום, אפשר להחליף את הזמנה {order} למידה גדולה יותר?",
			"בוודאי. המידה הבאה במלאי, ושלחתי אליך תווית החזרה עבור הזמנה {order}.", false},
		{"כמה זמן זה לוקח?", "בין שלושה לחמישה ימי עסקים מרגע שהחבילה מגיעה אלינו.", false},
		{"תודה רבה!", "בשמחה, יום נעים 😊", false},
	}},
	{"es", "Brisa", "parcel", []turn{
		{"¿Dónde está mi pedido {order}? Ya pagué el envío urgente.",
			"Lo siento, {name}. El pedido {order} salió ayer hacia {city} y llega mañana por la mañana. " +
				"Le devolvemos el envío urgente.", true},
		{"¿Cuándo recibo la devolución?", "En dos o tres días laborables, en la misma tarjeta.", false},
		{"Vale, gracias.", "A usted, {name}. ¡Buen día!", false},
	}},
	{"nb", "Nordlys", "warranty", []turn{
		{"Hei! {item} sluttet å virke. Ordre {order}.",
			"Hei {name}, så kjedelig! Du har to års garanti. Jeg har bestilt henting i {city} på torsdag.", true},
		{"Må jeg betale noe?", "Nei, reparasjonen og frakten er gratis.", false},
		{"Supert, takk!", "Bare hyggelig. Ha en fin dag!", false},
	}},
}

// customers are the shops that the bot works for, the busiest first.
var customers = []string{"Acme", "Megaship", "Nordlys", "Brisa", "Tilia", "Kawa", "Sahara", "Galil"}

var (
	items = []string{"kettle", "rain jacket", "desk lamp", "running shoes", "coffee machine", "backpack",
		"purple kettle", "toy elephant"}
	cities = []string{"Oslo", "Lyon", "Leeds", "Porto", "Graz", "Turin"}
	names  = []string{"Ann", "Ben", "Chloé", "Dmitri", "Esra", "Frøya", "Gáspár", "Hana"}
)

// filled returns a function that fills the slots of a talk's texts.
func (m *maker) filled() func(string) string {
	r := strings.NewReplacer(
		"{order}", "A-"+digits(m.IntN(90000)+10000),
		"{item}", items[m.IntN(len(items))],
		"{city}", cities[m.IntN(len(cities))],
		"{name}", names[m.IntN(len(names))],
	)

	return r.Replace
}

// talkOf draws a talk for a customer's user.
func (m *maker) talkOf(customer string) talk {
	var fitting []talk
	for _, t := range talks {
		if t.customer == customer {
			return t
		}
		if t.customer == "" {
			fitting = append(fitting, t)
		}
	}

	return fitting[m.IntN(len(fitting))]
}
