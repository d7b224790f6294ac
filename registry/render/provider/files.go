package provider

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// file is what an image_url, media or output block shows: a url, or the data itself.
type file struct {
	mime   string // type/subtype; "" if unknown
	data   string // base64; "" if it is given by url
	url    string
	title  string          // a name for it
	detail json.RawMessage // of an image; nil if not given
}

// defaultImage is the type of data that nothing says more about: its block shows an
// image.
const defaultImage = "image/jpeg"

// fileOf reads a block of type image_url or media. A data: url gives its data.
func fileOf(b *prompt.Block) file {
	inner := rawjson.Of(b.Raw, b.Kind)
	f := file{
		url:   b.Text,
		mime:  rawjson.Text(rawjson.Member(inner, "type")),
		title: rawjson.Text(rawjson.Member(inner, "title")),
	}
	if detail := rawjson.Member(inner, "detail"); !rawjson.IsNull(detail) {
		f.detail = detail
	}
	f.title = cmp.Or(f.title, "file")

	// The url may hold bare base64, if the block says so.
	if rawjson.Text(rawjson.Member(inner, "format")) == "base64" && !strings.HasPrefix(f.url, "data:") {
		f.data, f.url = f.url, ""
	}
	if rest, ok := strings.CutPrefix(f.url, "data:"); ok {
		if head, data, ok := strings.Cut(rest, ";base64,"); ok {
			f.data, f.url = data, ""
			f.mime, _, _ = strings.Cut(head, ";")
		}
	}
	f.mime = cmp.Or(f.mime, mimeOf(f.url))

	return f
}

// mimes are the types of the files that models read, by file extension.
var mimes = map[string]string{
	".jpg":  "image/jpeg",
	".jpeg": "image/jpeg",
	".png":  "image/png",
	".gif":  "image/gif",
	".webp": "image/webp",
	".pdf":  "application/pdf",
	".mp3":  "audio/mpeg",
	".wav":  "audio/wav",
	".mp4":  "video/mp4",
}

// mimeOf guesses from the extension of a url's path; "" if that says nothing.
func mimeOf(url string) string {
	// A signed url has its signature after the path.
	url, _, _ = strings.Cut(url, "?")
	url, _, _ = strings.Cut(url, "#")
	return mimes[strings.ToLower(path.Ext(url))]
}

// is reports whether the file is an image, audio, or video. A file of unknown type is an
// image, as its block says.
func (f *file) is(kind string) bool {
	if f.mime == "" {
		return kind == "image"
	}
	major, _, _ := strings.Cut(f.mime, "/")

	return major == kind
}

// format returns the subtype as clients spell it: png, jpeg, mp3.
func (f *file) format() string {
	_, minor, _ := strings.Cut(f.mime, "/")
	switch minor = strings.TrimPrefix(minor, "x-"); minor {
	case "mpeg":
		return "mp3"
	case "jpg":
		return "jpeg"
	}

	return minor
}

// dataType returns the type of the data, which some clients require.
func (f *file) dataType() string {
	return cmp.Or(f.mime, defaultImage)
}

// asURL returns a url for the file; a data: url if it is given as data.
func (f *file) asURL() string {
	if f.data == "" {
		return f.url
	}

	return "data:" + f.dataType() + ";base64," + f.data
}

// describe names the file in an error.
func (f *file) describe() string {
	kind := cmp.Or(f.mime, "a file of unknown type")
	if f.data == "" {
		return language.Shorten(kind) + " by url"
	}

	return language.Shorten(kind) + " as data"
}
