//go:build linux

package cost

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/dashboard"
	"promptspool/api/filterline"
)

// formType is the type of a form.
var formType = []string{"Content-Type", "application/x-www-form-urlencoded"}

// pageShapes are the shapes of the dashboard's queries and forms. fields are the names in its forms.
func pageShapes(csrf string) (all []*shape) {
	place := regexp.MustCompile(`\{[a-z]+\}`)
	for _, r := range dashboard.Routes() {
		method, path, _ := strings.Cut(r.Pattern, " ")
		path = place.ReplaceAllString(strings.TrimSuffix(path, "{$}"), shapeID)
		if withoutInput[r.Pattern] != "" {
			continue
		}
		if method == "GET" {
			all = append(all, queryShapes(method, path, nil)...)
			for _, name := range []string{"filter", "col", "sort", "name", "line"} {
				pair := name + "=a&"
				all = append(all, &shape{
					name: method + " " + path + "? of " + pair, method: method, path: path,
					query: func(size int) string { return strings.Repeat(pair, min(size, inHead)/len(pair)) },
				})
			}
			continue
		}
		for _, pair := range []string{
			"&", "a&", "=&", "%&", "name=&", "role=&text=&", "text=&", "tool=&", "value=a&", "variables=&",
		} {
			all = append(all, &shape{
				name: method + " " + path + " of " + pair, method: method, path: path, header: formType,
				body: func(size int) string {
					return "csrf=" + url.QueryEscape(csrf) + "&name=shaped&new=true&kind=chat&do=preview&" +
						"settings=%7B%7D&" + strings.Repeat(pair, size/len(pair))
				},
			})
		}
	}

	return all
}

// lineShapes are the shapes of filter lines: each token, and each field with the values that it has.
func lineShapes() (all []*shape) {
	tokens := []string{
		"a ", "-", "(", ")", `"" `, `"a" `, `\"`, ":", "a: ", "a:(", "or ", ",", "*", "a.b:c ", "..", ">", "a:>=1 ",
		"-a ", `a."":b `,
	}
	for _, f := range filterline.Fields {
		tokens = append(tokens, f.Example+" ", "-"+f.Example+" ", f.Name+":a ", f.Name+":* ", f.Name+":(a or b) ")
	}
	for _, token := range tokens {
		for _, path := range []string{"search", "analytics", "statistics", "export"} {
			all = append(all, &shape{
				name:   "a line of " + quoted(token) + " for " + path,
				method: "POST",
				path:   "/api/public/v2/requests/" + path,
				body: func(size int) string {
					return `{"filter":` + quoted(strings.Repeat(token, size/len(token))) + `}`
				},
			})
		}
		all = append(all, &shape{
			name:   "a line of many values, " + quoted(token),
			method: "POST",
			path:   "/api/public/v2/requests/search",
			body: func(size int) string {
				values := strings.Repeat(strings.TrimSpace(token)+" or ", size/(len(token)+4))
				return `{"filter":` + quoted("tag:("+values+"a)") + `}`
			},
		})
	}

	return all
}

// packedShapes are the shapes of bodies that are packed: the smallest parts that each format has,
// and what unpacks to the most.
func packedShapes() (all []*shape) {
	body := `{"request_id":"` + shapeID + `","function_name":"f","kwargs":{},"request_response":{},` +
		`"request_start_time":1,"request_end_time":2}`
	add := func(encoding, name string, of func(size int) []byte) {
		all = append(all, &shape{
			name: encoding + ", " + name, method: "POST", path: "/track-request",
			header: []string{"Content-Encoding", encoding}, body: func(size int) string { return string(of(size)) },
		})
	}
	var empty, whole, block bytes.Buffer
	_ = gzip.NewWriter(&empty).Close()
	w := gzip.NewWriter(&whole)
	_, _ = w.Write([]byte(body))
	_ = w.Close()
	repeated := func(b []byte) func(int) []byte {
		return func(size int) []byte { return bytes.Repeat(b, max(1, size/len(b))) }
	}
	add("gzip", "empty members", repeated(empty.Bytes()))
	add("gzip", "members", repeated(whole.Bytes()))
	add("gzip", "blanks", func(size int) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(body + strings.Repeat(" ", size*8)))
		_ = w.Close()
		return b.Bytes()
	})

	stored := []byte{0, 0, 0, 0xff, 0xff} // an empty block that is not the last
	add("deflate", "empty blocks", func(size int) []byte {
		return append([]byte{0x78, 0x9c}, bytes.Repeat(stored, size/len(stored))...)
	})
	f, _ := flate.NewWriter(&block, 9)
	_ = f.Flush()
	add("gzip", "empty blocks", func(size int) []byte {
		return append(slicesHead(empty.Bytes(), 10), bytes.Repeat(stored, size/len(stored))...)
	})

	e, _ := zstd.NewWriter(nil)
	add("zstd", "empty frames", repeated(e.EncodeAll(nil, []byte{})))
	add("zstd", "frames that are skipped", repeated([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}))
	add("zstd", "frames", repeated(e.EncodeAll([]byte(body), nil)))
	add("zstd", "empty blocks", func(size int) []byte {
		// A frame of a window of 1 KiB, whose raw blocks have no bytes.
		return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0}, bytes.Repeat([]byte{0, 0, 0}, size/3)...)
	})

	return all
}

// slicesHead returns a copy of the first n bytes.
func slicesHead(b []byte, n int) []byte { return append([]byte{}, b[:n]...) }

// A text of up to 256 KiB is compiled, also to be shown. The editor shows a larger one, which is only
// stored, for twice the processor of other pages, and ten times its bytes of memory.
const (
	templateBounded = 500 * time.Millisecond
	templateMost    = 4 << 20
)

// templateShapes are the shapes of templates: what their languages are made of, again and again.
func templateShapes() (all []*shape) {
	for _, token := range []string{
		"{", "}", "{a}", "{{", "{{a}}", "{a!r}", "{a:>9}", "{a[b]}", "{% if a %}", "{% if a %}{% endif %}", "{# #}",
		"{% raw %}", "{{ a|upper }}", "{{ a.b }}", "{{ a[0] }}", "{{ (a) }}", "{{ [a] }}", "{{ not a }}",
		"{% for a in b %}", "{% set a = 1 %}", "{% for a in b %}{% endfor %}", "@@@", "@@@a@@@", "{{ 1+1 }}",
		"{{ 'a' }}", "{% elif a %}", "{% else %}",
	} {
		for _, format := range []string{"f-string", "jinja2"} {
			all = append(all, &shape{
				name:    fmt.Sprintf("a template in %s of %s", format, token),
				method:  "POST",
				path:    "/rest/prompt-templates",
				looks:   templateLooks,
				bounded: templateBounded,
				most:    templateMost,
				body: func(size int) string {
					text := quoted(strings.Repeat(token, max(1, size/len(token))))
					return `{"prompt_template":{"prompt_name":"` + shapeID + `"},"prompt_version":{"prompt_template":` +
						`{"type":"chat","messages":[{"role":"user","template_format":"` + format + `",` +
						`"content":[{"type":"text","text":` + text + `}]}]}}}`
				},
			})
		}
	}

	return all
}
