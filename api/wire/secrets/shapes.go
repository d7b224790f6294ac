package secrets

import (
	"bytes"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// rest is what follows the prefix of a key.
type rest uint8

const (
	generated   rest = iota // letters, digits, - and _ that look generated
	hexadecimal             // digits, and letters up to f
	capitals                // capitals and digits, and nothing beyond the least length
	dotted                  // as generated, and dots
	inBase64                // as generated, and + / =
)

// keyShape is how the keys of one issuer begin, and their minimum length.
type keyShape struct {
	prefix string
	least  int // bytes, with the prefix
	rest   rest
	source string // who documents or scans for them

	// asked is set for what is not a credential, or not surely. It is masked only where an operator's
	// redaction rules ask for it.
	asked bool
}

// shapes are the well-known keys. The first prefix that fits counts. Redaction shares them.
var shapes = []keyShape{
	// Providers of models, and what apps around them use.
	{prefix: "sk-", least: 20,
		source: "gitleaks openai-api-key, anthropic-api-key; trufflehog openrouter, langfuse, deepseek"},
	{prefix: "AIza", least: 35, source: "gitleaks gcp-api-key"},
	{prefix: "AQ.Ab8RN6", least: 30, source: "betterleaks gcp-gemini-api"},
	{prefix: "ABSKQmVkcm9ja0FQSUtleS", least: 40, rest: inBase64,
		source: "gitleaks aws-amazon-bedrock-api-key-long-lived"},
	{prefix: "bedrock-api-key-", least: 40, rest: inBase64,
		source: "gitleaks aws-amazon-bedrock-api-key-short-lived"},
	{prefix: "gsk_", least: 24, source: "trufflehog groq"},
	{prefix: "xai-", least: 24, source: "trufflehog xai"},
	{prefix: "pplx-", least: 24, source: "gitleaks perplexity-api-key"},
	{prefix: "hf_", least: 24, source: "gitleaks huggingface-access-token"},
	{prefix: "api_org_", least: 28, source: "gitleaks huggingface-organization-api-token"},
	{prefix: "r8_", least: 24, source: "trufflehog replicate"},
	{prefix: "nvapi-", least: 24, source: "trufflehog nvapi"},
	{prefix: "fw_", least: 24, source: "docs.fireworks.ai; GitHub secret scanning"},
	{prefix: "csk-", least: 24, source: "betterleaks cerebras-api-key"},
	{prefix: "tgp_v1_", least: 28, source: "betterleaks togetherai-api-key"},
	{prefix: "rpa_", least: 34, source: "betterleaks runpod-api-key"},
	{prefix: "vck_", least: 24, source: "betterleaks vercel-ai-gateway-key"},
	{prefix: "tvly-", least: 24, source: "docs.tavily.com; GitHub secret scanning"},
	{prefix: "pcsk_", least: 24, source: "trufflehog pinecone"},
	{prefix: "ls__", least: 24, source: "docs.langchain.com"},
	{prefix: "lsv2_", least: 24, source: "trufflehog langsmith"},
	{prefix: "pk-lf-", least: 24, asked: true, source: "trufflehog langfuse: the public key"},
	{prefix: "wandb_v1_", least: 28, source: "betterleaks weights-and-biases-api-key-v1"},
	{prefix: "pl_", least: 20, source: "docs.promptlayer.com"},
	{prefix: "ps_", least: 32, source: "this program's keys"},
	{prefix: "dapi", least: 36, rest: hexadecimal, source: "gitleaks databricks-api-token"},

	// Clouds.
	{prefix: "AKIA", least: 20, rest: capitals, source: "gitleaks aws-access-token"},
	{prefix: "ASIA", least: 20, rest: capitals, source: "gitleaks aws-access-token"},
	{prefix: "ya29.", least: 25, rest: dotted, source: "developers.google.com/identity; GitHub secret scanning"},
	{prefix: "GOCSPX-", least: 28, source: "GitHub secret scanning google_oauth_client_secret"},
	{prefix: "dop_v1_", least: 28, source: "gitleaks digitalocean-pat"},
	{prefix: "doo_v1_", least: 28, source: "gitleaks digitalocean-access-token"},
	{prefix: "dor_v1_", least: 28, source: "gitleaks digitalocean-refresh-token"},
	{prefix: "hvs.", least: 24, rest: dotted, source: "gitleaks vault-service-token"},
	{prefix: "hvb.", least: 24, rest: dotted, source: "gitleaks vault-batch-token"},
	{prefix: "sbp_", least: 24, source: "betterleaks supabase-management-token"},
	{prefix: "sb_secret_", least: 30, source: "betterleaks supabase-project-api-key"},
	{prefix: "pscale_", least: 36, source: "gitleaks planetscale-api-token"},

	// Code, packages and chat.
	{prefix: "ghp_", least: 30, source: "gitleaks github-pat"},
	{prefix: "gho_", least: 30, source: "gitleaks github-oauth"},
	{prefix: "ghs_", least: 30, source: "gitleaks github-app-token"},
	{prefix: "ghu_", least: 30, source: "gitleaks github-app-token"},
	{prefix: "ghr_", least: 30, source: "gitleaks github-refresh-token"},
	{prefix: "github_pat_", least: 30, source: "gitleaks github-fine-grained-pat"},
	{prefix: "glpat-", least: 20, source: "gitleaks gitlab-pat"},
	{prefix: "glptt-", least: 26, source: "gitleaks gitlab-ptt"},
	{prefix: "gldt-", least: 24, source: "gitleaks gitlab-deploy-token"},
	{prefix: "glrt-", least: 24, source: "gitleaks gitlab-runner-authentication-token"},
	{prefix: "npm_", least: 30, source: "gitleaks npm-access-token"},
	{prefix: "pypi-AgEIcHlwaS5vcmc", least: 40, source: "gitleaks pypi-upload-token"},
	{prefix: "dckr_pat_", least: 30, source: "betterleaks dockerhub-personal-access-token"},
	{prefix: "xoxb-", least: 24, source: "gitleaks slack-bot-token"},
	{prefix: "xoxp-", least: 24, source: "gitleaks slack-user-token"},
	{prefix: "xoxa-", least: 24, source: "gitleaks slack-legacy-workspace-token"},
	{prefix: "xoxr-", least: 24, source: "gitleaks slack-legacy-workspace-token"},
	{prefix: "xoxs-", least: 24, source: "gitleaks slack-legacy-token"},
	{prefix: "xoxc-", least: 24, source: "betterleaks slack-session-token"},
	{prefix: "xoxd-", least: 24, rest: inBase64, source: "betterleaks slack-session-cookie"},
	{prefix: "xoxe-", least: 24, source: "gitleaks slack-config-refresh-token"},
	{prefix: "xapp-", least: 24, source: "gitleaks slack-app-token"},
	{prefix: "lin_api_", least: 28, source: "gitleaks linear-api-key"},
	{prefix: "ntn_", least: 30, source: "gitleaks notion-api-token"},
	{prefix: "secret_", least: 50, source: "trufflehog notion"},
	{prefix: "figd_", least: 30, source: "betterleaks figma-personal-access-token"},

	// Payment, mail and operations.
	{prefix: "sk_live_", least: 20, source: "gitleaks stripe-access-token"},
	{prefix: "sk_test_", least: 20, source: "gitleaks stripe-access-token"},
	{prefix: "rk_live_", least: 20, source: "gitleaks stripe-access-token"},
	{prefix: "rk_test_", least: 20, source: "gitleaks stripe-access-token"},
	{prefix: "sk_", least: 51, rest: hexadecimal, source: "trufflehog elevenlabs"},
	{prefix: "whsec_", least: 24, source: "docs.stripe.com/webhooks"},
	{prefix: "SG.", least: 24, rest: dotted, source: "gitleaks sendgrid-api-token"},
	{prefix: "sntrys_", least: 28, rest: inBase64, source: "gitleaks sentry-org-token"},
	{prefix: "sntryu_", least: 28, source: "gitleaks sentry-user-token"},
	{prefix: "glc_", least: 30, rest: inBase64, source: "gitleaks grafana-cloud-api-token"},
	{prefix: "glsa_", least: 30, source: "gitleaks grafana-service-account-token"},
	{prefix: "phx_", least: 30, source: "trufflehog posthog"},
	{prefix: "shpat_", least: 30, source: "gitleaks shopify-access-token"},
	{prefix: "PMAK-", least: 30, source: "gitleaks postman-api-token"},
	{prefix: "key-", least: 24, asked: true, source: "trufflehog mailgun; also what people call their own"},
}

var (
	keyShapes    [256][]*keyShape // by their first byte
	dottedShapes []*keyShape      // those whose prefix has a dot
)

func init() {
	for i := range shapes {
		s := &shapes[i]
		keyShapes[s.prefix[0]] = append(keyShapes[s.prefix[0]], s)
		if bytes.IndexByte([]byte(s.prefix), '.') >= 0 {
			dottedShapes = append(dottedShapes, s)
		}
	}
}

// BeginsKey reports whether a well-known key may begin with this byte.
func BeginsKey(c byte) bool { return keyShapes[c] != nil }

// KeyLength returns the minimum length of the well-known keys that begin as text does; 0
// if none does.
func KeyLength(text []byte) int {
	if shape := shapeOf(text); shape != nil {
		return shape.least
	}
	return 0
}

func shapeOf(text []byte) *keyShape {
	if len(text) == 0 {
		return nil
	}

	for _, shape := range keyShapes[text[0]] {
		if len(text) >= len(shape.prefix) && string(text[:len(shape.prefix)]) == shape.prefix {
			return shape
		}
	}
	return nil
}

// fits reports whether a run of a key's bytes, after how much of it belongs to the prefix, may be
// that of the shape.
func (s *keyShape) fits(run []byte, prefixBytes int) bool {
	behind := run[prefixBytes:]
	switch s.rest {
	case hexadecimal:
		return consistsOf(behind, isHex)
	case capitals:
		return len(run) == s.least && consistsOf(run, isDigit|isUpper)
	}
	return isRandom(behind)
}

// occursInBase64 reports whether base64 may contain the prefix.
func (s *keyShape) occursInBase64() bool { return consistsOf([]byte(s.prefix), ofAWS) }

// consistsOf reports whether each byte of a text may be part of one of these things.
func consistsOf(text []byte, kinds uint8) bool {
	for _, c := range text {
		if byteKinds[c]&kinds == 0 {
			return false
		}
	}
	return true
}

// The things that a byte may be part of, in the order of byteKinds.
const (
	ofKey    = 1 << iota // a key: letters, digits, - and _
	ofName               // a member's name that could be a credential's
	ofAWS                // an AWS secret
	ofScheme             // the scheme of a URL
	isDigit
	isUpper
	isLower
	isHex
)

const (
	digits  = "0123456789"
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	small   = "abcdefghijklmnopqrstuvwxyz"
)

// byteKinds maps each byte to what it may be part of.
var byteKinds = ByteKinds(
	digits+capital+small+"-_",
	digits+capital+small+"-_. ",
	digits+capital+small+"+/",
	digits+capital+small+"-.+",
	digits,
	capital,
	small,
	digits+"ABCDEFabcdef",
)

// ByteKinds returns a table of bytes. Those of the first set have the lowest bit, and so on.
func ByteKinds(sets ...string) (kinds [256]uint8) {
	for i, set := range sets {
		for _, c := range []byte(set) {
			kinds[c] |= 1 << i
		}
	}
	return kinds
}

// plainSegmentMin is from what length on a segment without any digit looks random.
const plainSegmentMin = 32

// isRandom reports whether a text looks generated, as keys do and hyphenated names do
// not: one of its segments is very long, or long with a digit, or changes more than once
// between digits and letters.
func isRandom(text []byte) bool {
	segment, digits, turns := 0, 0, 0
	for i, c := range text {
		kind := byteKinds[c]
		if kind&(isDigit|isUpper|isLower) == 0 {
			segment, digits, turns = 0, 0, 0
			continue
		}

		segment++
		if kind&isDigit != 0 {
			digits++
		}
		if segment > 1 && (kind^byteKinds[text[i-1]])&isDigit != 0 {
			turns++
		}

		if segment >= plainSegmentMin || segment >= 16 && digits > 0 || segment >= 8 && turns > 1 {
			return true
		}
	}

	return false
}

// url looks at the user and the query of a URL, whose authority begins after the colon's
// slashes, if the text between the quotes source[open] and source[end] begins with that URL, or one
// within it does. It returns the index up to which everything was looked at.
func (f *finder) url(open, colon, begin, end int, nested bool) int {
	source := f.source[:end]

	scheme := colon
	for byteKinds[source[scheme-1]]&ofScheme != 0 {
		scheme--
	}
	if scheme == colon || source[scheme-1] != '"' && source[scheme-1] != '\'' {
		return begin
	}

	// In a text that quotes URLs in prose, they are examples.
	depth := jsonscan.Backslashes(source, open, scheme-1)
	counts := nested || scheme-1 == open

	// The last @ ends the user: passwords may contain one.
	at := 0
	i := begin
	for i < end && !isAuthorityEnd(source[i]) {
		if source[i] == '@' {
			at = i
		}
		i++
	}

	// A user alone is a credential on the web, but not in ssh://git@host.
	isWeb := bytes.HasPrefix(source[scheme:colon], []byte("http"))
	hasPassword := bytes.IndexByte(source[begin:max(at, begin)], ':') >= 0
	if counts && (isWeb || hasPassword) {
		f.add(wire.SecretURL, begin, at)
	}

	urlEnd := urlEnd(source, i, source[scheme-1], depth)
	if urlEnd < 0 {
		// It is not a whole text.
		return i
	}
	if first := bytes.IndexAny(source[i:urlEnd], "?#"); first >= 0 && counts {
		f.query(i+first+1, urlEnd)
	}

	return urlEnd
}

// urlEnd returns the index of the quote, or of the backslashes before it, with which a text ends
// that is a URL from source[i] on; -1 if it is more than a URL. The text began with this quote
// after so many backslashes. One that breaks off ends with source.
func urlEnd(source []byte, i int, quote byte, depth int) int {
	for i == len(source) || source[i] > ' ' {
		behind := i
		for behind < len(source) && source[behind] == '\\' {
			behind++
		}
		if behind == len(source) {
			return i
		}

		escapes := behind - i
		switch c := source[behind]; {
		case c == quote && escapes == depth:
			return i
		case c == '"', c == quote:
			return -1
		case escapes == 0, c == '/', c == 'u':
			i = behind + 1
		default:
			// A line break, say.
			return -1
		}
	}

	return -1
}

// queryValueMin is how long a value must be if its name means a credential in queries alone:
// ?code=42 and ?key=name are not.
const queryValueMin = 8

// query finds the credentials in the parameters of source[i:end].
func (f *finder) query(i, end int) {
	source := f.source[:end]
	for i < end {
		name := i
		for i < end && byteKinds[source[i]]&ofName != 0 {
			i++
		}
		nameEnd := i
		valueEnd, next := parameterEnd(source, i)
		i = next
		if nameEnd == end || source[nameEnd] != '=' || nameEnd-name > nameBytesMax {
			continue
		}

		var buf [nameBytesMax]byte
		where := credentialPlaces(simpleName(buf[:0], source[name:nameEnd]))
		isLong := valueEnd-(nameEnd+1) >= queryValueMin
		if where&inQuery != 0 && (where&inTexts != 0 || isLong) {
			f.add(wire.SecretURL, nameEnd+1, valueEnd)
		}
	}
}

// parameterEnd returns the index after the parameter around source[i], and that of the next one.
// JSON may write & as an escape, and so may a text within a text.
func parameterEnd(source []byte, i int) (end, next int) {
	for ; i < len(source); i++ {
		switch source[i] {
		case '&', ';', '?', '#':
			return i, i + 1
		case '\\':
			behind := i
			for behind < len(source) && source[behind] == '\\' {
				behind++
			}
			if bytes.HasPrefix(source[behind:], []byte("u0026")) {
				return i, behind + len("u0026")
			}
			// Of another escape, the byte after its backslashes is part of it.
			i = behind
		}
	}

	return len(source), len(source)
}

// skipSlashes returns the index after the two slashes at source[i], or i if there are
// none. JSON may write each with a backslash.
func skipSlashes(source []byte, i int) int {
	behind := i
	for range 2 {
		if behind < len(source) && source[behind] == '\\' {
			behind++
		}
		if behind >= len(source) || source[behind] != '/' {
			return i
		}
		behind++
	}
	return behind
}

// isAuthorityEnd reports whether a byte ends the part of a URL with user and host.
func isAuthorityEnd(c byte) bool {
	switch c {
	case '/', '?', '#', '"', '\'', '\\', '<', '>':
		return true
	}
	return c <= ' '
}
