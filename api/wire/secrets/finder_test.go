package secrets

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// Keys of the known shapes. None of them was ever issued.
const (
	openAIKey    = "sk-proj-T3BlbkFJ9aQ2xZ7mK4nR8vL1cW6yB5dH0gU3sE"
	anthropicKey = "sk-ant-api03-Qx8Lm2Zt7Rk4Vw9Yb3Nc6Hd1Jf5Gs0Pa_Ue-AA"
	googleKey    = "AIzaSyD4kQ9xZ7mK2nR8vL1cW6yB5dH0gU3sE_t"
	awsID        = "AKIAIOSFODNN7EXAMPLE"
	awsSecret    = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	githubKey    = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	slackKey     = "xoxb-263594206564-2343594206574-FGqddMF8t08v8N7Oq4i57vs1"
	jsonWebToken = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0" +
		".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
)

// secretNames are the names of members that hold a credential, as clients write them.
var secretNames = strings.Fields(`apiKey openAIApiKey azureOpenAIApiKey anthropic_api_key api-key x-api-key X-API-Key
	x-goog-api-key Ocp-Apim-Subscription-Key Cookie Set-Cookie cookie Authorization Proxy-Authorization secretAccessKey
	aws_secret_access_key aws_secret AWSSecretKey sessionToken aws_session_token x-amz-security-token azure_ad_token
	azureADToken accessToken access_token token Token authToken auth_token bearer_token bearerToken refresh_token
	refreshToken id_token idToken client_secret clientSecret password Password db_password passwd pwd passphrase
	private_key privateKey secret_key hf_token api_token`)

// stripped returns what Strip leaves of a body.
func stripped(t *testing.T, body string) string {
	t.Helper()
	return string(Strip([]byte(body), parse(t, body)))
}

func TestACredentialIsMaskedByItsName(t *testing.T) {
	for _, name := range secretNames {
		for _, shape := range []string{
			`{"kwargs":{"%s":"%s","n":1}}`,
			`{"args":[{"a":[{"%s" : "%s"}]}]}`,
			`{"parameters":{"%s":"%s"}}`,
			`{"input":{"request":{"headers":{"%s":"%s"}}}}`,
			`{"request_response":{"extra_headers":{"%s":"%s"}}}`,
			`{"metadata":{"x":{"defaultHeaders":{"a":1,"%s":"%s"}}}}`,
			`{"attributes":{"function_input":"{'args': (), 'kwargs': {'%s': '%s'}}"}}`,
			`{"function_input":"{'a': {'%s': b'%s'}, 'n': 1}"}`,
			`{"function_input":"{\"%s\":\"%s\"}"}`,
			`{"kwargs":{"tool_calls":[{"arguments":"\n [{\"a\":1, \"%s\": \"%s\"}]"}]}}`,
			`{"a":"{\"b\":\"{\\\"%s\\\":\\\"%s\\\"}\"}"}`,
		} {
			fill := func(value string) string {
				return strings.Replace(strings.Replace(shape, "%s", name, 1), "%s", value, 1)
			}

			same(t, name, stripped(t, fill("hunter2 & more")), fill("[masked]"))
		}
	}
}

func TestAKeyIsMaskedByItsShape(t *testing.T) {
	for _, tt := range []struct{ what, text, want string }{
		{"OpenAI's", "my key is " + openAIKey + ", thanks", "my key is [masked], thanks"},
		{"an older one of OpenAI", "sk-T3BlbkFJ9aQ2xZ7mK4nR8vL1cW6yB5dH0gU3sE4fGhJk2Lm9", "[masked]"},
		{"Anthropic's", "(" + anthropicKey + ")", "([masked])"},
		{"Google's", "https://x.example/v1?key=" + googleKey + "&alt=sse", "https://x.example/v1?key=[masked]&alt=sse"},
		{"GitHub's", `curl https://` + githubKey + `@github.com/a`, "curl https://[masked]@github.com/a"},
		{"GitHub's newer ones", "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789", "[masked]"},
		{"Slack's", "token=" + slackKey, "token=[masked]"},
		{"behind a line break", `a\n` + openAIKey + `\nb\t` + githubKey, `a\n[masked]\nb\t[masked]`},
		{"behind an escape", `\u003c` + openAIKey + `\u003e\u0027` + slackKey, `\u003c[masked]\u003e\u0027[masked]`},
		{"behind one of a text within a text", `{\"a\":\"b\\n` + openAIKey + `\"}`, `{\"a\":\"b\\n[masked]\"}`},
		{"that begins like an escape", `\r8_abcdefghij0123456789abcdefghij`, `\r8_abcdefghij0123456789abcdefghij`},
		{"behind a backslash", `\\r8_abcdefghij0123456789abcdefghij`, `\\[masked]`},
		{"AWS's id and secret", awsID + ":" + awsSecret, "[masked]:[masked]"},
		{"a secret on the next line", `aws_access_key_id = ` + awsID + `\naws_secret_access_key = ` + awsSecret + `\n`,
			`aws_access_key_id = [masked]\naws_secret_access_key = [masked]\n`},
		{"a secret before its id", awsSecret + ` of ` + awsID, "[masked] of [masked]"},
		{"a secret with escaped slashes", awsID + `\n` + strings.ReplaceAll(awsSecret, "/", `\/`),
			`[masked]\n[masked]`},
		{"an id and a hash", awsID + " da39a3ee5e6b4b0d3255bfef95601890afd80709",
			"[masked] da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{"a JSON web token", "authorization: Bearer " + jsonWebToken + ".", "authorization: Bearer [masked]."},
		{"behind base64", "iVBORw0KGgoAAAANSUhEUgAA+QkYR0/ABCDEFGHIJKLMNOPQRSTU/ VWX" + openAIKey + "/" + githubKey,
			"iVBORw0KGgoAAAANSUhEUgAA+QkYR0/ABCDEFGHIJKLMNOPQRSTU/ VWX" + openAIKey + "/[masked]"},
		{"two side by side", openAIKey + "," + openAIKey, "[masked],[masked]"},
	} {
		for _, shape := range []string{
			`{"kwargs":{"messages":[{"role":"user","content":"%s"}]}}`,
			`{"request_response":{"choices":[{"message":{"content":"%s"}}]}}`,
			`{"metadata":{"note":"%s"}}`,
			`{"tags":["%s"]}`,
			`{"error_message":"%s"}`,
		} {
			fill := func(value string) string { return strings.Replace(shape, "%s", value, 1) }

			same(t, tt.what, stripped(t, fill(tt.text)), fill(tt.want))
		}
	}
}

// A key is found wherever it is in a text, whatever runs of letters are around it.
func TestNoKeyIsSkipped(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"a", "ab_-9Z", " ", ".", ",", "+", "/", ":", "é",
		strings.Repeat("x", keyBytesMin-1), strings.Repeat("y", 2*keyBytesMin)}
	for range 20_000 {
		var around [2]string
		for i := range around {
			for range random.IntN(8) {
				around[i] += words[random.IntN(len(words))]
			}
		}

		body := `{"a":"` + around[0] + " " + openAIKey + " " + around[1] + `"}`
		same(t, "stripped", stripped(t, body), strings.Replace(body, openAIKey, maskedText, 1))
	}
}

func TestFindingsTellKindsAndNoSecrets(t *testing.T) {
	body := `{"api_key":"ps_1","kwargs":{"messages":[{"content":"a"},{"content":"my ` + openAIKey + `"}],` +
		`"pwd":"hunter2","api_key":7,"a.b":{"x":["https://u:p@h/"]}},` +
		`"metadata":{"e":"` + awsID + " " + awsSecret + `"}}`

	counts := map[wire.SecretKind]int{}
	got, n := Find([]byte(body), parse(t, body), 10, counts)
	same(t, "how many", []int{n, counts[wire.SecretName]}, []int{7, 3})
	same(t, "findings", got, []wire.SecretFinding{
		{Kind: wire.SecretName},
		{Kind: wire.SecretKey, Begins: "sk-p..."},
		{Kind: wire.SecretName},
		{Kind: wire.SecretName},
		{Kind: wire.SecretURL},
		{Kind: wire.SecretKey, Begins: "AKIA..."},
		{Kind: wire.SecretAWS},
	})

	some, _ := Find([]byte(body), parse(t, body), 2, counts)
	same(t, "some of them", some, got[:2])
	_, n = Find([]byte(stripped(t, body)), parse(t, stripped(t, body)), 10, counts)
	same(t, "findings in the masked body", n, 0)
}

// secretSeeds returns bodies that together hold a secret of every kind.
func secretSeeds() []string {
	return []string{
		`{"kwargs":{"apiKey":"x","headers":{"Cookie":"a=b"},"api_key":{"a":1}},"api_key":"k",` +
			`"args":["https://u:p@h/"]}`,
		`{"function_input":"{'args': (), 'kwargs': {'api_key': 'it\\'s', \"token\": b'x'}}"}`,
		`{"a":"{\"b\":\"{\\\"password\\\":\\\"c\\\\\\\"d\\\"}\"}","extra_headers":{"api\u002dkey":"x"}}`,
		`{"a":"\n` + openAIKey + `\\n` + awsID + `\/` + awsSecret + `","b":"Bearer ` + jsonWebToken + `"}`,
		`{"a":"\r8_abcdefghij0123456789abcdefghij\u00` + googleKey + `","kwargs":"` + githubKey + slackKey + `"}`,
		"{\"kwargs\":\n{\"token\" :\r\n\"x\"},\"b\":\"[{'pwd':'y\"}",
	}
}

// FuzzStrip checks that masking any body yields valid JSON, changes nothing but the
// secrets, and misses none.
func FuzzStrip(f *testing.F) {
	for _, seed := range secretSeeds() {
		f.Add([]byte(seed))
	}
	for _, name := range []string{"masked.txt", "kept.txt"} {
		for _, body := range bodies(f, name) {
			f.Add([]byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		object, err := wire.ParseObject(body)
		if err != nil {
			return
		}

		source := bytes.Clone(body)
		kept, found := Mask(source, object)
		same(t, "the source after Mask", string(source), string(body))

		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatal(err)
		}

		out := Strip(source, object)
		if !json.Valid(out) {
			t.Fatalf("not valid JSON: %q", out)
		}
		checkStripped(t, bytes.Clone(out), members)

		// Nothing is left to mask.
		again, err := wire.ParseObject(out)
		if err != nil {
			t.Fatalf("the stripped body does not parse: %v", err)
		}
		if twice, found := Mask(out, again); found {
			t.Fatalf("masked twice: %q, then %q", out, twice)
		}

		if found {
			same(t, "masked in a copy", string(kept), string(out))
		}

		// The text between the masks is that of the source, in the same order.
		left := strings.NewReplacer("\n", " ", "\r", " ").Replace(string(body))
		for _, m := range again {
			for part := range strings.SplitSeq(string(m.Value), maskedText) {
				part = strings.Trim(part, `"`)
				at := strings.Index(left, part)
				if at < 0 {
					t.Fatalf("%q is not in the source %q", part, left)
				}
				left = left[at+len(part):]
			}
		}
	})
}
