package calls

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"
)

// imageBytesMax bounds an encoded image that is worth showing.
const imageBytesMax = 2 << 20

// imageKinds are the kinds of images that browsers show and that cannot contain a script.
var imageKinds = []string{"png", "jpeg", "jpg", "gif", "webp"}

var base64Text = regexp.MustCompile(`^[A-Za-z0-9+/]+={0,2}$`)

// filePlaces are the members in which providers put a file, its bytes, its address, or what describes it.
var filePlaces = set(`image_url source media inlineData inline_data fileData file_data file document_url audio_url
	video_url input_audio resource image document video audio s3Location url uri fileUri file_uri file_url data
	content bytes b64_json blob`)

// file describes the file of a part that is not text.
type file struct {
	url   string // "" if it has no address
	mime  string // its type, such as application/pdf; "" if it names none
	name  string
	id    string
	bytes node // its text, unless that is the address
	held  bool // it is one: it has bytes, a type or a source
}

// fileOf reads the places of a part. The first that says something counts.
func fileOf(n node) (f file) {
	f.read(n, 0)
	f.held = f.held || f.mime != "" || f.bytes.isBytes()
	// Where there is only an id, a reader can name the file by that.
	f.name = cmp.Or(f.name, f.id)

	return f
}

// filePlacesMax is how many places are one within another: Bedrock has image, source and s3Location.
const filePlacesMax = 3

// read reads one place. Bytes are long: they are not copied.
func (f *file) read(place node, level int) {
	f.mime = cmp.Or(f.mime, place.texts("mimeType", "mime_type", "media_type", "mediaType", "contentType",
		"document_mimetype", "image_mimetype"))
	// A blueprint's media have it as their type.
	if t := place.texts("type"); f.mime == "" && strings.Contains(t, "/") {
		f.mime = t
	}
	f.name = cmp.Or(f.name, place.texts("filename", "title", "name", "displayName", "display_name", "file_name",
		"path"))
	f.id = cmp.Or(f.id, place.texts("file_id", "fileId"))
	f.held = f.held || place.at("source").isObject()

	for name := range place.names {
		if !filePlaces[string(name)] {
			continue
		}
		switch member := place.at(string(name)); {
		case addressed.Match(member.raw):
			f.url = cmp.Or(f.url, member.text())
		case member.isText() && !f.bytes.isBytes():
			f.bytes = member
		case member.isObject() && level < filePlacesMax:
			f.read(member.indexed(), level+1)
		}
	}
}

// addressed is the beginning of a file's address. A data: URL is the bytes themselves, which must not end
// up in a text.
var addressed = regexp.MustCompile(`^"(http|gs://|s3://)`)

// data returns the file's type and its bytes in base64.
func (f *file) data() (mime, data string) {
	mime, data = f.mime, f.bytes.text()
	if rest, ok := strings.CutPrefix(data, "data:"); ok {
		mime, data, _ = strings.Cut(rest, ";base64,")
	}

	return mime, data
}

// text returns what is in a file of text, "" for any other.
func (f *file) text() string {
	// Others may be long, and would be copied.
	if !strings.HasPrefix(f.mime, "text/") && !bytes.HasPrefix(f.bytes.raw, []byte(`"data:text/`)) {
		return ""
	}
	_, data := f.data()
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil || !utf8.Valid(text) {
		return ""
	}

	return string(text)
}

// file adds the file f of a part, by its URL, its type or its kind. One of text is its name and its text.
func (m *Message) file(n node, f file, texts PartKind) {
	if text := f.text(); text != "" {
		m.add(texts, f.name)
		m.add(texts, text)
		return
	}

	kind := n.texts("modality", "type", "block_type")
	for _, name := range []string{"image", "document", "video", "audio", "inlineData", "fileData"} {
		// Bedrock and Gemini name the kind by a member.
		if kind == "" && n.at(name).exists() {
			kind = name
		}
	}

	m.Parts = append(m.Parts, Part{
		Kind:  PartMedia,
		Text:  Clip(cmp.Or(f.url, f.mime, kind, "file")),
		Name:  Clip(f.name),
		Media: n.raw,
	})
}

// Image returns the picture that a part holds, as a data: URL of a PNG, JPEG, GIF or
// WebP. It knows the form of each provider's API. It returns "" for anything else,
// including a picture by its address and one that is too large.
func (p *Part) Image() string {
	if len(p.Media) == 0 || len(p.Media) > imageBytesMax {
		return ""
	}

	n := nodeOf(p.Media).indexed()
	f := fileOf(n)
	// Only a data: URL, or base64, has the bytes. A picture by its address is not shown:
	// looking at a page must not fetch from elsewhere.
	f.mime = cmp.Or(f.mime, "image/"+n.at("image").texts("format"))

	return dataURL(f.data())
}

// dataURL returns "" unless the image is of a kind that is shown. The URL ends up in a
// page, so nothing but base64 may follow the kind.
func dataURL(kind, data string) string {
	for _, k := range imageKinds {
		if strings.EqualFold(kind, "image/"+k) && base64Text.MatchString(data) {
			return "data:image/" + k + ";base64," + data
		}
	}

	return ""
}
