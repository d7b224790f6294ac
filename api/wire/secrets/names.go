package secrets

import (
	"bytes"
	"strings"
)

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
