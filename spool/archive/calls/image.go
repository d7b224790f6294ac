package calls

import (
	"regexp"
	"strings"
)

// imageBytesMax bounds an image, as it is encoded, that is worth showing.
const imageBytesMax = 2 << 20

// imageKinds are the kinds of images that browsers show and that can hold no script.
var imageKinds = []string{"png", "jpeg", "jpg", "gif", "webp"}

var base64Text = regexp.MustCompile(`^[A-Za-z0-9+/]+={0,2}$`)

// Image is a picture that a part holds as bytes, in whatever form the provider's API writes it, as a data: URL of a PNG, JPEG, GIF or WebP;
// "" for anything else, one by its address or one that is too large among it.
func (p *Part) Image() string {
	if len(p.Media) == 0 || len(p.Media) > imageBytesMax {
		return ""
	}
	n := node(p.Media)
	for _, place := range []node{n.at("image_url"), n.at("source"), n.at("media"), n.at("inlineData"), n.at("inline_data"), n} {
		url := place.text()
		if url == "" {
			url = place.texts("url", "image_url")
		}
		if rest, ok := strings.CutPrefix(url, "data:"); ok {
			kind, data, _ := strings.Cut(rest, ";base64,")
			return dataURL(kind, data)
		}
		if data := place.texts("data"); data != "" {
			return dataURL(place.texts("mimeType", "mime_type", "media_type"), data)
		}
	}
	if image := n.at("image"); image != nil { // Bedrock's
		return dataURL("image/"+image.texts("format"), image.at("source").texts("bytes"))
	}
	return ""
}

// dataURL is "" unless it is an image of a kind that is shown.
func dataURL(kind, data string) string {
	for _, k := range imageKinds {
		if strings.EqualFold(kind, "image/"+k) && base64Text.MatchString(data) {
			return "data:image/" + k + ";base64," + data
		}
	}
	return ""
}
