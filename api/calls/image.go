package calls

import (
	"bytes"
	"regexp"
	"strings"
)

// imageBytesMax bounds an encoded image that is worth showing.
const imageBytesMax = 2 << 20

// imageKinds are the kinds of images that browsers show and that cannot contain a script.
var imageKinds = []string{"png", "jpeg", "jpg", "gif", "webp"}

var base64Text = regexp.MustCompile(`^[A-Za-z0-9+/]+={0,2}$`)

// Image returns the picture that a part holds, as a data: URL of a PNG, JPEG, GIF or
// WebP. It knows the form of each provider's API. It returns "" for anything else,
// including a picture by its address and one that is too large.
func (p *Part) Image() string {
	if len(p.Media) == 0 || len(p.Media) > imageBytesMax || !holdsBytes(p.Media) {
		return ""
	}

	n := nodeOf(p.Media).indexed()
	for _, place := range []node{
		n.at("image_url"), n.at("source"), n.at("media"), n.at("inlineData"), n.at("inline_data"), n,
	} {
		url := place.text()
		if url == "" {
			url = place.texts("url", "image_url")
		}
		if rest, ok := strings.CutPrefix(url, "data:"); ok {
			// Only a data: URL has the bytes. A picture by its address is not shown:
			// looking at a page must not fetch from elsewhere.
			kind, data, _ := strings.Cut(rest, ";base64,")
			return dataURL(kind, data)
		}
		if data := place.texts("data"); data != "" {
			return dataURL(place.texts("mimeType", "mime_type", "media_type"), data)
		}
	}

	if image := n.at("image"); image.exists() { // Bedrock's
		return dataURL("image/"+image.texts("format"), image.at("source").texts("bytes"))
	}

	return ""
}

// holdsBytes reports whether a part may hold a picture. Most hold none, and to look for one at all of
// its places takes far longer.
func holdsBytes(media []byte) bool {
	return bytes.Contains(media, []byte(`data:`)) || bytes.Contains(media, []byte(`"data"`)) ||
		bytes.Contains(media, []byte(`"bytes"`))
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
