package secrets

import (
	"bytes"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

const (
	keyBytesMin      = 20  // no key is shorter
	webTokenBytesMin = 40  // nor is any web token that is worth masking
	awsSecretBytes   = 40  // every AWS secret has exactly this length
	besideMax        = 120 // bytes between the id of an AWS key and its secret
)

// shapes finds the well-known keys of from <= i < end. A key is a run of at least
// keyBytesMin letters, digits, - and _.
func (f *finder) shapes(from, end int) {
	source := f.source[:end]
	for begin := from; begin+keyBytesMin <= end; {
		// Backwards: most texts have few words of that length, so most bytes are skipped.
		runEnd := begin + keyBytesMin
		short := runEnd
		for short > begin && byteKinds[source[short-1]]&ofKey != 0 {
			short--
		}
		if short > begin {
			begin = short
			continue
		}

		for runEnd < end && byteKinds[source[runEnd]]&ofKey != 0 {
			runEnd++
		}
		begin = max(runEnd, f.run(from, begin, runEnd, end)) + 1

		// A picture in base64 is megabytes of runs; cross it in one stride.
		if begin <= end && isBase64(source, from, begin-1) {
			begin = behindBase64(source, begin)
		}
	}
}

// behindBase64 returns from where on a key may begin in or after the base64 around
// source[i]. That is after its last + or /, since only the part after it may continue
// with bytes that are not base64.
func behindBase64(source []byte, i int) int {
	end := i
	for end < len(source) && byteKinds[source[end]]&ofAWS != 0 {
		end++
	}
	for end > i && source[end-1] != '+' && source[end-1] != '/' {
		end--
	}
	return end
}

// isBase64 reports whether source[i] continues base64 beyond the bytes of keys.
func isBase64(source []byte, from, i int) bool {
	return i >= from && i < len(source) && (source[i] == '+' || source[i] == '/')
}

// run notes the key that a run of its bytes is. It returns the index after the key, or
// 0.
func (f *finder) run(from, begin, runEnd, end int) int {
	first, before := f.source[begin], byte(0)
	if begin > from {
		before = f.source[begin-1]
	}
	// Most runs of base64 end here.
	if keyShapes[first] == nil && first != 'e' && before != '\\' && before != '.' {
		return 0
	}

	starts := starts(f.source, from, begin)
	if before == '.' {
		starts = [2]int{beforeDot(f.source, from, begin), begin}
	}
	for _, start := range starts {
		if runEnd-start < keyBytesMin {
			continue
		}

		run := f.source[start:runEnd]
		if run[0] == 'e' && bytes.HasPrefix(run, []byte("eyJ")) {
			if behind := f.webToken(from, start, runEnd, end); behind > 0 {
				return behind
			}
			continue
		}

		shape := shapeOf(run)
		if shape == nil || shape.asked || len(run) < shape.least || !shape.fits(run, len(shape.prefix)) {
			continue
		}
		// A run that base64 may contain is not a key if base64 continues around it.
		if shape.occursInBase64() && (isBase64(f.source, from, start-1) ||
			shape.rest != inBase64 && isBase64(f.source[:end], from, runEnd)) {
			continue
		}

		if shape.rest == capitals {
			f.accessKey(from, start, runEnd, end)
			return runEnd
		}
		behind := f.keyEnd(shape, runEnd, end)
		f.add(wire.SecretKey, start, behind)
		return behind
	}

	return 0
}

// beforeDot returns the index at which the prefix of a key begins that has a dot right before
// source[i], such as ya29.a0Af; len(source) stands for none.
func beforeDot(source []byte, from, i int) int {
	for _, shape := range dottedShapes {
		start := i - strings.IndexByte(shape.prefix, '.') - 1
		if start < from || !bytes.HasPrefix(source[start:], []byte(shape.prefix)) {
			continue
		}
		if !continuesWord(source, from, start) {
			return start
		}
	}

	return len(source)
}

// continuesWord reports whether source[i] continues a word, which is not an escape.
func continuesWord(source []byte, from, i int) bool {
	isEscaped := func(n int) bool { return i-n-1 >= from && source[i-n-1] == '\\' }
	switch {
	case i == from || byteKinds[source[i-1]]&ofKey == 0:
		return false
	case isEscaped(1):
		return false
	}
	return !isEscaped(5) || source[i-5] != 'u'
}

// keyEnd returns the index after a key of which a first run of a key's bytes ends at i.
func (f *finder) keyEnd(shape *keyShape, i, end int) int {
	source := f.source
	switch shape.rest {
	case dotted:
		for i+1 < end && (byteKinds[source[i]]&ofKey != 0 ||
			source[i] == '.' && byteKinds[source[i+1]]&ofKey != 0) {
			i++
		}
	case inBase64:
		for i < end {
			next, ok := awsByte(source, i, end)
			if !ok && byteKinds[source[i]]&ofKey == 0 && source[i] != '=' {
				break
			}
			i = next
		}
	}

	return i
}

// starts returns the two indices at which a text may begin whose bytes begin at
// source[begin]; len(source) stands for none. Behind a backslash the first byte, or five,
// may belong to an escape, which must stay whole.
func starts(source []byte, from, begin int) [2]int {
	if begin == from || source[begin-1] != '\\' {
		return [2]int{begin, len(source)}
	}

	escape := 1
	if source[begin] == 'u' {
		escape = 5
	}
	if jsonscan.Backslashes(source, from, begin)%2 == 1 {
		return [2]int{begin + escape, len(source)}
	}

	// The backslash is escaped itself, but may begin an escape of a text within the text.
	return [2]int{begin, begin + escape}
}

// webToken notes a JSON web token: a head and a body in JSON, and a signature. Behind the
// word Bearer its parts are not looked at. It returns the index after it, or 0.
func (f *finder) webToken(from, start, runEnd, end int) int {
	source := f.source[:end]
	dots, dotsMax := 0, len(source)
	if !isBearer(source, from, start) {
		if !bytes.HasPrefix(source[runEnd:], []byte(".eyJ")) {
			return 0
		}
		dotsMax = 2
	}

	behind := start
	for behind < end && (byteKinds[source[behind]]&ofKey != 0 || source[behind] == '.' && dots < dotsMax) {
		if source[behind] == '.' {
			dots++
		}
		behind++
	}
	// A dot at the end is that of a sentence.
	for source[behind-1] == '.' {
		behind, dots = behind-1, dots-1
	}
	if dots < 2 || behind-start < webTokenBytesMin {
		return 0
	}

	f.add(wire.SecretBearer, start, behind)
	return behind
}

// isBearer reports whether the word Bearer precedes source[i].
func isBearer(source []byte, from, i int) bool {
	const word = "bearer"

	begin := i
	for begin > from && (source[begin-1] == ' ' || source[begin-1] == ':') {
		begin--
	}

	return begin < i && begin-len(word) >= from &&
		strings.EqualFold(string(source[begin-len(word):begin]), word)
}

// accessKey notes the id of an AWS key, and the secret beside it.
func (f *finder) accessKey(from, start, behind, end int) {
	f.awsSecret(max(from, start-besideMax), start)
	f.add(wire.SecretKey, start, behind)
	f.awsSecret(behind, min(end, behind+besideMax+awsSecretBytes))
}

// awsSecret notes the first AWS secret of from <= i < end: 40 letters, digits, + and /,
// some of them capitals and some small, which no hexadecimal hash has.
func (f *finder) awsSecret(from, end int) {
	source := f.source
	for begin := from; begin < end; begin++ {
		if _, ok := awsByte(source, begin, end); !ok {
			continue
		}

		runEnd := begin
		for next, ok := awsByte(source, runEnd, end); ok; next, ok = awsByte(source, runEnd, end) {
			runEnd = next
		}

		// The run may begin with the letters of an escape,
		// which are not part of the secret.
		for _, start := range starts(source, from, begin) {
			if isAWSSecret(source, start, runEnd) {
				f.add(wire.SecretAWS, start, runEnd)
				return
			}
		}
		begin = runEnd
	}
}

// awsByte returns the index after one byte of an AWS secret at i, and whether there is
// one. JSON may write / with a backslash.
func awsByte(source []byte, i, end int) (next int, ok bool) {
	if i+1 < end && source[i] == '\\' && source[i+1] == '/' {
		return i + 2, true
	}
	return i + 1, i < end && byteKinds[source[i]]&ofAWS != 0
}

func isAWSSecret(source []byte, start, end int) bool {
	if end-start < awsSecretBytes {
		return false
	}

	text := bytes.ReplaceAll(source[start:end], []byte(`\/`), []byte("/"))
	var kinds uint8
	for _, c := range text {
		kinds |= byteKinds[c]
	}

	return len(text) == awsSecretBytes && kinds&isUpper != 0 && kinds&isLower != 0
}

// place is where a member's name makes its text a credential.
type place uint8

const (
	inTexts     place = 1 << iota // a text that is JSON or Python's repr itself
	inArguments                   // a call's arguments and headers, at any depth
	inHeaders                     // headers alone
	inQuery                       // the query of a URL
	directly                      // right in the arguments, not deeper, if the text looks generated

	everywhere = inTexts | inArguments | inQuery
)

// match is how much of a name must be that of a rule.
type match uint8

const (
	whole match = iota
	ending
	beginning
)

// nameRule is a name, as simpleName writes it, whose text is a credential.
type nameRule struct {
	name   string
	how    match
	where  place
	source string // the client or API that has a credential under this name
}

// nameRules are the names of credentials. In arguments there is no rule for everything that
// ends in "token": tokenizers have an eos_token, pages a next_token, and counts are called
// max_tokens. Words that mean something else in people's own JSON, such as pass, do not count
// in texts.
var nameRules = []nameRule{
	{"apikey", ending, everywhere, "clients of OpenAI, Anthropic, Google, LangChain"},
	{"secretkey", ending, everywhere, "MinIO, Langfuse; gitleaks generic-api-key"},
	{"secretaccesskey", ending, everywhere, "AWS SDKs"},
	{"awssecret", beginning, everywhere, "AWS SDKs"},
	{"privatekey", ending, everywhere, "Google's service accounts"},
	{"authkey", ending, everywhere, "DeepL; gitleaks generic-api-key"},
	{"accountkey", ending, everywhere, "betterleaks azure-storage-account-key"},
	{"sharedaccesskey", ending, everywhere, "betterleaks azure-servicebus-connection-string"},
	{"subscriptionkey", ending, everywhere, "Azure API Management: Ocp-Apim-Subscription-Key"},
	{"functionskey", ending, everywhere, "Azure Functions: x-functions-key"},
	{"serviceaccountkey", ending, everywhere, "Google's service accounts"},
	{"serviceaccountjson", ending, everywhere, "Google's service accounts"},
	{"connectionstring", ending, everywhere, "Azure SDKs; OpenTelemetry db.connection_string"},
	{"clientsecret", ending, everywhere, "OAuth 2.0, RFC 6749"},
	{"appsecret", ending, everywhere, "betterleaks lark-app-secret"},
	{"apitoken", ending, everywhere, "Replicate, Cloudflare; gitleaks generic-api-key"},
	{"accesstoken", ending, everywhere, "OAuth 2.0, RFC 6749"},
	{"refreshtoken", ending, everywhere, "OAuth 2.0, RFC 6749"},
	{"bearertoken", ending, everywhere, "AWS Bedrock; RFC 6750"},
	{"authtoken", ending, everywhere, "clients of Anthropic; gitleaks generic-api-key"},
	{"sessiontoken", ending, everywhere, "AWS SDKs"},
	{"securitytoken", ending, everywhere, "AWS: X-Amz-Security-Token"},
	{"vaulttoken", ending, everywhere, "HashiCorp Vault: X-Vault-Token"},
	{"heliconeauth", ending, everywhere, "Helicone: Helicone-Auth"},
	{"authorization", ending, everywhere, "RFC 9110"},
	{"password", ending, everywhere, "gitleaks generic-api-key"},
	{"passwd", ending, everywhere, "gitleaks generic-api-key"},
	{"passphrase", ending, everywhere, "betterleaks polymarket-passphrase"},

	{"token", whole, everywhere, "clients of Hugging Face, GitHub, Slack"},
	{"idtoken", whole, everywhere, "OpenID Connect"},
	{"azureadtoken", whole, everywhere, "clients of Azure OpenAI"},
	{"hftoken", whole, everywhere, "clients of Hugging Face"},
	{"githubtoken", whole, everywhere, "clients of GitHub"},
	{"slacktoken", whole, everywhere, "clients of Slack"},
	{"bottoken", whole, everywhere, "clients of Slack, Telegram"},
	{"usertoken", whole, everywhere, "clients of Slack"},
	{"oauthtoken", whole, everywhere, "OAuth 1.0, RFC 5849"},
	{"sastoken", whole, everywhere, "Azure SDKs"},
	{"jwttoken", whole, everywhere, "RFC 7519"},
	{"jwt", whole, everywhere, "RFC 7519"},
	{"bearer", whole, everywhere, "RFC 6750"},
	{"secret", whole, everywhere, "gitleaks generic-api-key"},
	{"pwd", whole, everywhere, "database drivers"},
	{"cookie", whole, everywhere, "RFC 6265"},
	{"cookies", whole, everywhere, "Python's requests and httpx"},
	{"setcookie", whole, everywhere, "RFC 6265"},
	{"sessioncookie", whole, everywhere, "RFC 6265"},
	{"authcookie", whole, everywhere, "RFC 6265"},

	{"auth", whole, inArguments | inQuery, "Python's requests and httpx"},
	{"pass", whole, inArguments | inQuery, "gitleaks generic-api-key"},
	{"secret", ending, inArguments, "gitleaks generic-api-key"},
	{"credential", ending, inArguments, "Azure SDKs; gitleaks generic-api-key"},
	{"credentials", ending, inArguments, "Google's and AWS's SDKs, LiteLLM; gitleaks generic-api-key"},

	{"auth", ending, inHeaders, "Helicone, Portkey"},
	{"token", ending, inHeaders, "HashiCorp Vault, GitLab, Cloudflare"},
	{"signature", ending, inHeaders | directly, "webhooks of GitHub, Slack, Stripe"},

	{"key", whole, inQuery, "Google's APIs"},
	{"code", whole, inQuery, "Azure Functions; OAuth 2.0, RFC 6749"},
	{"sig", whole, inQuery, "Azure Storage"},
	{"signature", ending, inQuery, "CloudFront, Amazon S3, Google Cloud Storage; OpenTelemetry url.full"},
	{"awsaccesskeyid", whole, inQuery, "Amazon S3; OpenTelemetry url.full"},
}

var (
	wholeNames  = map[string]place{}
	nameEndings [32][]nameRule // by the last letter

	// nameTails has a bit for the last three letters of each name that is looked at: for the
	// last two letters, the letters before them.
	nameTails [32][32]uint32
)

func init() {
	for _, r := range nameRules {
		switch r.how {
		case whole:
			wholeNames[r.name] |= r.where
		case ending:
			last := r.name[len(r.name)-1] & 31
			nameEndings[last] = append(nameEndings[last], r)
		case beginning:
			// mayBeCredential knows it.
			continue
		}
		noteTail(r.name)
	}

	for _, name := range []string{"args", "kwargs", "parameters", "headers"} {
		noteTail(name)
	}
}

func noteTail(name string) {
	n := len(name)
	nameTails[name[n-1]&31][name[n-2]&31] |= 1 << (name[n-3] & 31)
}

// mayBeCredential reports whether a name of at least three bytes needs a closer look. It
// rules out most names by three letters.
func mayBeCredential(name []byte) bool {
	n := len(name)
	return nameTails[name[n-1]&31][name[n-2]&31]>>(name[n-3]&31)&1 != 0 ||
		name[0]|0x20 == 'a' && name[1]|0x20 == 'w'
}

// credentialPlaces returns where a name, as simpleName writes it, is a credential's.
func credentialPlaces(name []byte) (where place) {
	if len(name) == 0 {
		return 0
	}

	where = wholeNames[string(name)]
	for i := range nameEndings[name[len(name)-1]&31] {
		rule := &nameEndings[name[len(name)-1]&31][i]
		if cut := len(name) - len(rule.name); cut >= 0 && string(name[cut:]) == rule.name {
			where |= rule.where
		}
	}
	if bytes.HasPrefix(name, []byte("awssecret")) {
		where |= everywhere
	}

	return where
}

// isCredential reports whether a member of kwargs, args or parameters is a credential,
// whatever its value is. This rule is older than the others and looks at the name as it
// is written.
func isCredential(name string) bool {
	if len(name) < len("api_key") {
		return false
	}

	name = strings.ToLower(name)
	return name == "api_key" || strings.HasSuffix(name, "_api_key") ||
		name == "authorization" || strings.HasPrefix(name, "aws_secret")
}

// isKeyOfBody reports whether a member at the top of a body is a key, whatever its value is:
// api_key in another spelling.
func isKeyOfBody(name string) bool {
	if len(name) < len("apikey") || len(name) > nameBytesMax || name[len(name)-1]|0x20 != 'y' {
		return false
	}

	var buf [nameBytesMax]byte
	return bytes.HasSuffix(simpleName(buf[:0], []byte(name)), []byte("apikey"))
}

// heldBy returns what a member holds, by its name as simpleName writes it: a call's arguments,
// headers, which are arguments as well, or neither.
func heldBy(name []byte) place {
	switch {
	case bytes.HasSuffix(name, []byte("headers")):
		return inArguments | inHeaders
	case string(name) == "args" || string(name) == "parameters" || bytes.HasSuffix(name, []byte("kwargs")):
		return inArguments
	}
	return 0
}

// nameBytesMax bounds the names that are compared; no credential has a longer one.
const nameBytesMax = 64

// simpleName appends a name in lower case, without - _ . and blanks.
func simpleName(b, name []byte) []byte {
	for _, c := range name {
		switch kind := byteKinds[c]; {
		case kind&isUpper != 0:
			b = append(b, c|0x20)
		case kind&(isLower|isDigit) != 0:
			b = append(b, c)
		}
	}
	return b
}

// IsAttribute reports whether an attribute of a span is a credential by its key, such as
// llm.api_key or http.request.header.cookie. Headers have more such names than other
// attributes have.
func IsAttribute(key []byte) bool {
	if len(key) < 3 || len(key) > 4*nameBytesMax {
		return false
	}

	simple := simpleName(make([]byte, 0, 4*nameBytesMax), key)
	if credentialPlaces(simple)&inTexts != 0 {
		return true
	}

	last := key[bytes.LastIndexByte(key, '.')+1:]
	return bytes.Contains(simple, []byte("header")) &&
		credentialPlaces(simpleName(nil, last))&(inTexts|inHeaders) != 0
}
