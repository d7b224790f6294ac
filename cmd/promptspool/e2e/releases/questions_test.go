//go:build linux

package releases

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// asking are what a server is asked: calls of the API, and commands beside it.
type asking struct {
	questions []string
	packed    []string // of rows that only the files of a server have, in blocks
	deletions []string // at last
}

// firstAsked are the questions of what fill and pack give a server.
var firstAsked = asking{questions, packedQuestions, deletions}

// questions are asked of what fill gives a server.
var questions = slices.Concat([]string{
	`POST /api/public/v2/requests/search {"q":"purple elephant"}`,
	`POST /api/public/v2/requests/search {"filter":"-tag:bulk","per_page":100}`,
	`POST /api/public/v2/requests/search {"filter":"tag:sums digit:7","sort_by":"output_tokens"}`,
	`POST /api/public/v2/requests/search {"filter":"status:error template:team/greet"}`,
	`GET /api/public/v2/requests/` + id(greeted),
	`GET /api/public/v2/requests/` + id(failed),
	`GET /api/public/v2/requests/` + id(cluttered),
	`GET /api/public/v2/requests/` + id(forgotten),
	`GET /api/public/v2/requests/` + id(plain+7),
	`GET /api/public/v2/requests/orphans`,
	`POST /api/public/v2/requests/analytics {"bucket":"day","filter":"-tag:bulk"}`,
	`POST /api/public/v2/requests/template-statistics {"bucket":"day","filter":"-tag:bulk"}`,
	`GET /api/public/v2/requests/suggestions?field=prompt_name`,
	`POST /api/public/v2/sessions/search {}`,
	`GET /api/public/v2/sessions/s-1`,
	`POST /api/public/v2/users/search {}`,
	`POST /api/public/v2/traces/search {}`,
	`GET /api/public/v2/traces/` + trace,
	`POST /api/public/v2/spans/search {}`,
	`GET /api/public/v2/score-definitions`,
	`GET /prompt-templates`,
	`POST /prompt-templates/team%2Fgreet {"label":"prod","input_variables":{"name":"Ann"}}`,
	`GET /prompt-templates/team%2Fgreet?version=2`,
	`GET /prompt-templates/team%2Fgreet/labels`,
	`keys list`,
	`people list`,
	`projects list`,
	// Further pages: of these the rows are counted by the days of their terms, too.
	`POST /api/public/v2/requests/search {"filter":"tag:sums time:2026-11-20","per_page":3}`,
	`POST /api/public/v2/requests/search {"filter":"digit:7 since:2026-11-19 before:2026-11-22","per_page":1,"page":2}`,
	`POST /api/public/v2/requests/export {"filter":"tag:weather"}`,
	`POST /api/public/v2/requests/export {"filter":"-tag:bulk","format":"csv"}`,
	`POST /api/public/v2/requests/template-comparison {"prompt_name":"team/greet","version_a":1,"version_b":2}`,
	`POST /rest/backtest {"prompt_name":"team/greet","version":2,"last":20}`,
	`GET /rest/get-prompt-template?prompt_name=team%2Fgreet&version=1`,
	`GET /prompt-templates/team%2Fgreet?label=prod`,
	`GET /prompt-templates?label=next`,
	`GET /api/public/v2/sessions/s-2`,
	`POST /api/public/v2/spans/search {"kind":"agent"}`,
	`POST /api/public/v2/spans/search {"name":"chat"}`,
	`POST /api/public/v2/spans/search {"having":{"filters":[{"field":"spans","operator":"eq","value":2}]}}`,
	`POST /api/public/v2/traces/search {"filter":"spans:2 since:2026-11-20 before:2026-11-21"}`,
	`POST /api/public/v2/users/search {"filter":"score.tone:polite cost:>0","sort_by":"cost"}`,
	`POST /api/public/v2/sessions/search {"filter":"turns:>1 status:error","sort_by":"errors"}`,
	`POST /api/public/v2/sessions/search {"filter":"mean_score:80 author:judge","sort_by":"mean_score"}`,
	`POST /api/public/v2/sessions/search {"q":"raining in boston","sort_by":"tokens"}`,
	`POST /api/public/v2/sessions/search {"filter":"turns:>2"}`,
},
	finding(found...), finding(missed...), searching(groups...),
	sorting("-tag:bulk (-digit:* OR digit:(3 or 7))", orders...),
	sorting("-tag:bulk (-digit:* OR digit:(3 or 7))", "score.default", "score.faithful", "score.solved"),
	summing("template:team/greet@1", "score:80..80", "author:judge", "digit:7", "tag:sums time:2026-11-20", "tag:none"),
	suggesting("model", "status", "label", "session_id", "user_id", "environment", "metadata_keys",
		"metadata_values&metadata_key=digit", "score_name", "score_author", "score_value", "error_type", "sidecar",
		"input_variable_values&metadata_key=name", "tags&prefix=wea"),
)

// found are filters that find calls of fill, one or more for each way in which a database looks calls up.
var found = []string{
	`template:team/greet`, `template:team/greet@1`, `template:team/greet@next`, `version:1`, `label:next`,
	`tag:weather`, `tag:(weather or none)`, `tag:sums digit:7`, `-tag:sums -tag:bulk`,
	`plan:silver`, `metadata.region:eu`, `metadata_key:digit`, `metadata_key:region`, `-digit:* -tag:bulk`,
	`session:s-1`, `user:ann`, `environment:production`, `group:g-1`, `group:g-2`,
	`status:error`, `error:timeout`, `model:gpt-4o-mini-2024-07-18 digit:3`, `model:gpt* tag:weather`,
	`provider:OpenAI digit:3`, `function:openai.ChatCompletion.create digit:3`, `finish:stop tag:weather`,
	`sidecar:pod-1 tag:weather`, `trace:` + trace, `id:` + id(greeted), `is:plain_text digit:3`,
	`score:80..80`, `score:>59 -tag:bulk`, `score.default:60`, `score.faithful:0.83`, `score.faithful:0.8..0.9`,
	`score.solved:true`, `score.tone:polite`, `score.tone:(rude or polite)`, `score.tone:*`, `-score:* digit:3`,
	`author:judge`, `author:ann@example.com`, `author.tone:ann@example.com`, `author:a*`, `score_name:faithful`,
	`time:2026-11-20 tag:weather`, `since:2026-11-19 before:2026-11-22 digit:3`,
	`time:2026-11-20T09:00:01..2026-11-20T09:00:04 -tag:bulk`,
	`received:2026-11-20 tag:weather`, `started:2026-11-20 tag:weather`, `ended:>2026-11-20T09:00:01 tag:weather`,
	`latency:0.4s..0.6s tag:weather`, `time_to_first_token:100ms..`, `cost:>0 digit:3`, `input_tokens:12 digit:3`,
	`output_tokens:<7 digit:3`,
	`raining`, `input:raining`, `output:"no rain"`, `input:"raining in boston"`, `input:squar* digit:3`,
	`input:squared digit:3`, `output:1521`, `elephant OR paris`, `*urple*`, `-input:squared digit:(3 or 7) OR raining`,
	`variable.name:Ann`, `variable_key:name`,
}

// missed are such filters that find nothing, although some of what they ask for was there once, or is of
// another call or column.
var missed = []string{
	`template:team/other`, `template:team/greet@2`, `template:team/greet@prod`, `version:2`, `label:prod`,
	`tag:gold`, `tag:weather digit:7`, `plan:gold`, `plan:eu`, `metadata_key:tone`, `metadata_key:silver`,
	`session:s-2`, `user:gone`, `user:judge`, `environment:staging`, `group:g-3`, `step:5`,
	`status:error tag:weather`, `error:judge`, `model:gpt-4o`, `provider:anthropic`, `function:openai`,
	`finish:length`, `sidecar:pod-2`, `trace:0af7651916cd43dd8448eb211c80319c`, `id:` + id(forgotten), `is:json`,
	`score:81..89`, `score.default:0.83`, `score.solved:false`, `score.tone:rude`, `score.nothing:*`,
	`author:rob@example.com`, `author.faithful:ann@example.com`, `score_name:judge`,
	`time:2026-11-21 tag:weather`, `since:2026-11-17 before:2026-11-20 digit:3`, `received:2026-11-21 tag:weather`,
	`latency:>1s digit:3`, `cost:>1`, `cached_tokens:>0`,
	`rainin`, `input:elephant`, `output:raining`, `input:"boston raining"`, `input:forget`, `output:152`,
	`variable.name:ann`, `variable_key:Ann`,
}

// groups are filters that no line has.
var groups = []string{
	`{"field":"metadata_keys","operator":"is","value":"digit"}`,
	`{"field":"metadata_keys","operator":"is","value":"7"}`,
	`{"field":"metadata_keys","operator":"in","value":["plan","step"]}`,
	`{"field":"metadata","nested_key":"digit","operator":"is_not","value":"7"}`,
	`{"field":"score","nested_key":"faithful","operator":"is_null"}`,
	`{"field":"score_value","nested_key":"tone","operator":"is","value":"polite"}`,
	`{"field":"score_value","nested_key":"solved","operator":"is","value":"polite"}`,
	`{"field":"score_author","operator":"in","value":["judge","rob@example.com"]}`,
	`{"field":"text","operator":"matches","value":"\"raining in boston\""}`,
}

// orders are what 0.1.0 sorts by.
var orders = strings.Fields(`list_time accepted_at request_start_time input_tokens output_tokens cost latency_ms
	time_to_first_token_ms status`)

// packedQuestions are what a server is asked of rows in blocks.
var packedQuestions = slices.Concat([]string{
	`POST /api/public/v2/requests/search {"q":"rare"}`,
	`POST /api/public/v2/requests/search {"filter":"tag:bulk","per_page":3,"page":400}`,
	`POST /api/public/v2/requests/analytics {"bucket":"day"}`,
	`GET /api/public/v2/requests/suggestions?field=tags`,
	`POST /api/public/v2/requests/search {"filter":"tag:bulk time:2026-11-19 word","per_page":3}`,
	`POST /api/public/v2/requests/search {"filter":"tag:bulk score:55"}`,
	`POST /api/public/v2/requests/search {"filter":"tag:bulk score:56"}`,
	`POST /api/public/v2/requests/search {"filter":"-score:* tag:bulk time:2026-11-20T08:57.."}`,
	`POST /api/public/v2/requests/search {"filter":"tag:bulk rar"}`,
	`POST /api/public/v2/requests/search {"filter":"tag:bulk \"rare word\" since:2026-11-19T12:00"}`,
}, sorting("tag:bulk", orders...), sorting("tag:bulk", "score.default"), summing("rare", "time:2026-11-19"))

// deletions are asked last. Some look for a value that a call had for one second and does not show.
var deletions = []string{
	`DELETE /api/public/v2/requests?metadata_key=plan&metadata_value=eu`,
	`DELETE /api/public/v2/requests?metadata_key=step&metadata_value=5&before=2026-11-20T09:00:19Z`,
	`DELETE /api/public/v2/requests?metadata_key=step&metadata_value=5&before=2026-11-20T09:00:18Z`,
	`GET /api/public/v2/requests/` + id(cluttered),
	`DELETE /api/public/v2/requests?metadata_key=digit&metadata_value=7`,
	`POST /api/public/v2/requests/search {"filter":"tag:sums"}`,
	`DELETE /api/public/v2/traces/` + trace,
	`POST /api/public/v2/spans/search {}`,
}

// searching returns searches by conditions in JSON.
func searching(groups ...string) (questions []string) {
	for _, group := range groups {
		questions = append(questions,
			`POST /api/public/v2/requests/search {"per_page":100,"filter":"-tag:bulk",`+
				`"filter_group":{"filters":[`+group+`]}}`)
	}
	return questions
}

// finding returns searches by lines.
func finding(lines ...string) (questions []string) {
	for _, line := range lines {
		questions = append(questions,
			fmt.Sprintf(`POST /api/public/v2/requests/search {"filter":%q,"per_page":100}`, line))
	}
	return questions
}

// sorting returns searches in each order, with and without the first.
func sorting(line string, orders ...string) (questions []string) {
	for _, order := range orders {
		for _, direction := range []string{"asc", "desc"} {
			questions = append(questions, fmt.Sprintf(`POST /api/public/v2/requests/search {"filter":%q,`+
				`"sort_by":%q,"sort_order":%q,"per_page":20}`, line, order, direction))
		}
	}
	return questions
}

// summing returns questions for what filters find, summed up.
func summing(lines ...string) (questions []string) {
	for _, line := range lines {
		for _, kind := range []string{"analytics", "template-statistics"} {
			questions = append(questions, fmt.Sprintf(`POST /api/public/v2/requests/%s {"filter":%q,"bucket":"day",`+
				`"metadata_cost_breakdown_key":"digit"}`, kind, line))
		}
	}
	return questions
}

// suggesting returns questions for the values of fields.
func suggesting(fields ...string) (questions []string) {
	for _, field := range fields {
		questions = append(questions, `GET /api/public/v2/requests/suggestions?field=`+field)
	}
	return questions
}

// An empty answer proves little of an index: most questions must find something.
func TestQuestionsHaveTheAnswersThatTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, name := range []string{serverSaid, dumpSaid} {
		asFound(t, "testdata/0.1.0", name, found, missed)
		asFound(t, "testdata/0.1.0/"+moreDir, name, moreFound, moreMissed)
	}
}

// asFound fails unless a release found something with some filters, and nothing with others.
func asFound(t *testing.T, dir, name string, found, missed []string) {
	t.Helper()
	totals := map[string]int{}
	for _, a := range read[said](t, dir, name).Answers {
		var page struct{ Total int }
		if json.Unmarshal(a.Answer, &page) == nil {
			totals[a.Question] = page.Total
		}
	}
	for _, question := range finding(found...) {
		if totals[question] == 0 {
			t.Errorf("%s/%s: it found nothing: %s", dir, name, question)
		}
	}
	for _, question := range finding(missed...) {
		if n, asked := totals[question]; n != 0 || !asked {
			t.Errorf("%s/%s: it found %d: %s", dir, name, n, question)
		}
	}
}
