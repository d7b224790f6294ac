package markup

import (
	"strings"
	"testing"
)

// linked returns a link as Markdown becomes one; away is what each of them has.
func linked(address, text string) string {
	return `<a href="` + address + `"` + away + `>` + text + `</a>`
}

const (
	away = ` rel="noopener noreferrer" target="_blank"`
	code = `<pre tabindex="0" dir="ltr">`
)

func TestMarkdownBecomesHTML(t *testing.T) {
	for source, want := range map[string]string{
		"# Title\n\nOne\ntwo **bold** `a<b`": "<h3>Title</h3>\n" +
			"<p>One<br>\ntwo <strong>bold</strong> <code>a&lt;b</code></p>\n",
		"|a|b|\n|-|-:|\n|c|d|": `<div class="scroll" tabindex="0" role="group" aria-label="A table"><table>` +
			"\n<thead>\n<tr>\n<th>a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n" +
			"<tbody>\n<tr>\n<td>c</td>\n<td align=\"right\">d</td>\n</tr>\n</tbody>\n</table></div>\n",
		"## A\n### B\n## C\n# D\n### E\n# F": "<h3>A</h3>\n<h4>B</h4>\n<h3>C</h3>\n" +
			"<h3>D</h3>\n<h4>E</h4>\n<h3>F</h3>\n",

		"- a\n- b":        "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n",
		"a \\* b &amp; c": "<p>a * b &amp; c</p>\n",

		// Tags are text, and links lead to other sites only.
		"<context>\n<b onclick=x>hi</b>\n</context>": "<p>&lt;context&gt;<br>\n" +
			"&lt;b onclick=x&gt;hi&lt;/b&gt;<br>\n&lt;/context&gt;</p>\n",
		"[a](https://b.example/?x=1&y=\"2)":   "<p>" + linked("https://b.example/?x=1&amp;y=%222", "a") + "</p>\n",
		"[a](javascript:alert(1)) [b](/keys)": "<p>a b</p>\n",
		"[a](https:keys) [b](//c.example)":    "<p>a b</p>\n",
		"[a](java&#115;cript:alert(1))":       "<p>a</p>\n",
		"![a plan](https://b.example/a.png)":  "<p>" + linked("https://b.example/a.png", "a plan") + "</p>\n",
		"![](https://b.example/)":             "<p>" + linked("https://b.example/", "https://b.example/") + "</p>\n",
		"![](data:image/png;base64,AA)":       "<p></p>\n",
		"[![alt](https://b.example)](https://c.example)": "<p>" +
			linked("https://c.example", "alt") + "</p>\n",
		"<https://b.example> <javascript:x>": "<p>" +
			linked("https://b.example", "https://b.example") + " &lt;javascript:x&gt;</p>\n",
		"<a@b.example>": "<p>" + linked("mailto:a@b.example", "a@b.example") + "</p>\n",

		"```go\nfunc f() { return \"x\" } // 1\n```": code + `<span class="k">func</span> f() { ` +
			`<span class="k">return</span> <span class="s">&#34;x&#34;</span> } <span class="c">// 1</span>` +
			"\n</pre>\n",
		"```\n<b>\n```": code + "&lt;b&gt;\n</pre>\n",
		"- a\n\n  ```py\n  if 1:\n\t  x = '''\n  y'''\n  ```": "<ul>\n<li>\n<p>a</p>\n" + code +
			`<span class="k">if</span> <span class="n">1</span>:` + "\n" +
			`    x = <span class="s">&#39;&#39;&#39;` + "\n" +
			`</span><span class="s">y&#39;&#39;&#39;</span>` + "\n</pre>\n</li>\n</ul>\n",
	} {
		got, ok := Markdown(source, nil)
		if !ok || string(got) != want {
			t.Errorf("%q becomes %v\n%s\nwant\n%s", source, ok, got, want)
		}
	}
}

func TestMarksStandWhereverTheirTextDoes(t *testing.T) {
	at := func(text string, parts ...string) (marks []Mark) {
		for _, part := range parts {
			from := strings.Index(text, part)
			marks = append(marks, Mark{From: from, To: from + len(part)})
		}
		return marks
	}

	const prose = "**one** two\nthree `four`\n\n```go\nreturn five\n```\n"
	got, _ := Markdown(prose, at(prose, "two\nthree `fo", "turn fi"))
	want := `<p><strong>one</strong> <mark class="hit">two</mark><br>` + "\n" +
		`<mark class="hit rest">three </mark><code><mark class="hit rest">fo</mark>ur</code></p>` + "\n" + code +
		`<span class="k">re<mark class="hit">turn</mark></span><mark class="hit rest"> fi</mark>ve` + "\n</pre>\n"
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	const object = `{"a": "bcd"}`
	if got := string(JSON(object, at(object, "c"))); got !=
		`{<span class="m">&#34;a&#34;</span>: <span class="s">&#34;b<mark class="hit">c</mark>d&#34;</span>}` {
		t.Error(got)
	}
	got = Plain("<a>", []Mark{{From: 1, To: 2, Variable: `"`}})
	if got != `&lt;<mark title="&#34;">a</mark>&gt;` {
		t.Error(got)
	}
}

func TestJSONIsLaidOutUnlessThatMakesItMuchLonger(t *testing.T) {
	if got, ok := LayOut(` {"a":[1,"{[,"]}`); !ok || got != "{\n  \"a\": [\n    1,\n    \"{[,\"\n  ]\n}" {
		t.Errorf("%v %s", ok, got)
	}
	for _, text := range []string{"", "a", "1", `"a"`, `{"a":1`, "[1] [2]"} {
		if got, ok := LayOut(text); ok {
			t.Errorf("%q is laid out as %q", text, got)
		}
	}

	deep := strings.Repeat("[", 400) + strings.Repeat("1,", 50_000) + "1" + strings.Repeat("]", 400)
	if got, ok := LayOut(deep); ok {
		t.Errorf("%d bytes become %d", len(deep), len(got))
	}
}
