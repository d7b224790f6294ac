package postgres

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"promptspool/spool/database/postgres/schema"
)

// rule is something that Citus rejects, or does differently from PostgreSQL, on a table that is
// spread over several nodes.
// See https://docs.citusdata.com/en/stable/develop/reference_workarounds.html.
type rule struct {
	pattern *regexp.Regexp
	why     string
	example string // that breaks it
}

// spreadTables are the tables that schema.IsSpread names.
const spreadTables = `(record_states|record_deltas|record_calls|records|record_bodies|` +
	`rollups|rollup_totals|tombstones|account_weeks|summaries|text_units|text_pages|deleted_values)`

var rules = []rule{
	{
		regexp.MustCompile(`(?is)\bFROM\s+` + spreadTables + `\b.*\bFOR\s+(NO\s+KEY\s+)?(UPDATE|SHARE|KEY)\b`),
		"rows of several nodes cannot be locked",
		`SELECT state FROM record_states WHERE request_id = ANY($1) FOR UPDATE`,
	},
	{
		regexp.MustCompile(`(?i)\b(now|clock_timestamp|random|gen_random_uuid|statement_timestamp)\s*\(|` +
			`\bCURRENT_(TIMESTAMP|DATE|TIME)\b`),
		"a change cannot use what differs from node to node; pass it as a parameter",
		`INSERT INTO records (at) VALUES ($1) ON CONFLICT DO UPDATE SET at = now()`,
	},
	{
		regexp.MustCompile(`(?i)\b(BIG|SMALL)?SERIAL\b|\bGENERATED\b.*\bIDENTITY\b|\bnextval\b`),
		"a sequence exists on one node only",
		`CREATE TABLE x (id bigserial PRIMARY KEY)`,
	},
	{
		regexp.MustCompile(`(?i)\bREFERENCES\b`),
		"a foreign key needs both tables spread alike",
		`CREATE TABLE record_bodies (id uuid REFERENCES records)`,
	},
	{
		regexp.MustCompile(`(?i)\bCREATE\s+(OR\s+REPLACE\s+)?(CONSTRAINT\s+)?(TRIGGER|RULE)\b`),
		"triggers and rules do not run on the nodes",
		`CREATE TRIGGER t AFTER INSERT ON records`,
	},
	{
		regexp.MustCompile(`(?i)\bWITH\s+RECURSIVE\b|\bGROUPING\s+SETS\b|\bROLLUP\s*\(|\bCUBE\s*\(|` +
			`\bTABLESAMPLE\b|\bMERGE\s+INTO\b|\bEXCLUDE\s+USING\b`),
		"it is not supported over several nodes",
		`WITH RECURSIVE x AS (SELECT 1) SELECT * FROM x`,
	},
	{
		regexp.MustCompile(`(?i)\bDROP\s+(TABLE|INDEX)\s+(IF\s+EXISTS\s+)?[a-z_]+\s*,`),
		"a statement may drop only one table or index",
		`DROP INDEX a, b`,
	},
	{
		regexp.MustCompile(`(?i)\bUPDATE\s+` + spreadTables + `\b.*\bSET\b[^;]*\baccount_id\s*=[^;]*\bWHERE\b`),
		"the column by which a table is spread cannot be changed",
		`UPDATE summaries SET account_id = $1 WHERE newest = $2`,
	},
	{
		regexp.MustCompile(`(?i)\(\s*SELECT\s+FROM\b`),
		"a sub-select needs a column to be sent to the nodes",
		`SELECT EXISTS (SELECT FROM records_default WHERE true)`,
	},
	{
		regexp.MustCompile(`(?is)\bUPDATE\b.*\bu\.\w+::`),
		"a cast of a column may depend on settings, which differ from node to node",
		`UPDATE records r SET terms = u.terms::bigint[] FROM unnest($1::text[]) u (terms)`,
	},
	{
		regexp.MustCompile(`(?i)\$\d+[^,]*\[u\.\w+`),
		"a piece of a parameter, by columns, crashes the coordinator of Citus 13.2",
		`UPDATE records r SET terms = ($1::bigint[])[u.first:u.last] FROM unnest($2::int[], $3::int[]) u (first, last)`,
	},
	{
		regexp.MustCompile(`(?is)\bFROM\s+` + spreadTables + `\b.*\(account_id,[^)]*\)\s*>.*\bLIMIT\b`),
		"a step over all accounts brings as many rows from each shard; go on account by account",
		`SELECT state FROM record_states WHERE (account_id, request_id) > ($1, $2) ORDER BY 1, 2 LIMIT 100`,
	},
	{
		regexp.MustCompile(`(?i)\bSELECT\s+\*`),
		"a query names the columns that it reads",
		`SELECT * FROM records`,
	},
}

// moving is the one statement that needs whole rows: a new partition takes over its rows from
// the default one.
var moving = regexp.MustCompile(`^INSERT INTO .* SELECT \* FROM`)

func broken(sql string) (why []string) {
	if moving.MatchString(sql) {
		return nil
	}
	for _, r := range rules {
		if r.pattern.MatchString(sql) {
			why = append(why, r.why)
		}
	}

	return why
}

func TestAllSQLIsSuchAsCitusTakes(t *testing.T) {
	for where, sql := range statements(t) {
		for _, why := range broken(sql) {
			t.Errorf("%s: %s:\n%s", where, why, sql)
		}
	}
}

func TestTheRulesOfCitusAreKept(t *testing.T) {
	for _, r := range rules {
		if len(broken(r.example)) == 0 {
			t.Errorf("no rule matches %s", r.example)
		}
	}
}

// isSQL matches string literals of the sources that are a statement, or a piece of one.
var isSQL = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|LOCK|SET|WITH|` +
	`COPY|FROM|AND|ORDER BY)\s`)

// statements returns the SQL statements of the package's sources, with concatenations joined,
// and those of schema.sql.
func statements(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)

	var paths []string
	for _, pattern := range []string{"*.go", "connection/*.go", "filter/*.go", "schema/*.go"} {
		found, _ := filepath.Glob(pattern)
		paths = append(paths, found...)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}

		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, whole := textOf(e)
			if isSQL.MatchString(text) {
				all[fmt.Sprint(files.Position(n.Pos()))] = text
			}
			return !whole
		})
	}
	if len(all) < 60 {
		t.Fatalf("only %d statements were found; the test does not look at the package", len(all))
	}

	for i, sql := range strings.Split(withoutComments(schema.SQL), ";") {
		all[fmt.Sprintf("schema.sql, statement %d", i+1)] = strings.TrimSpace(sql)
	}
	steps, err := filepath.Glob("schema/step_*.sql")
	if err != nil || len(steps) == 0 {
		t.Fatalf("there are no steps: %v", err)
	}
	for _, step := range steps {
		text, err := os.ReadFile(step)
		if err != nil {
			t.Fatal(err)
		}
		for i, sql := range strings.Split(withoutComments(string(text)), ";") {
			all[fmt.Sprintf("%s, statement %d", step, i+1)] = strings.TrimSpace(sql)
		}
	}

	return all
}

// textOf returns a string literal, or a concatenation, in which "x" replaces what is not a
// literal.
func textOf(e ast.Expr) (text string, whole bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ = strconv.Unquote(e.Value)
			return text, true
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, ok := textOf(e.X)
			right, also := textOf(e.Y)
			if ok || also {
				return left + right, true
			}
		}
	}

	return "x", false
}

var comment = regexp.MustCompile(`--[^\n]*`)

func withoutComments(sql string) string { return comment.ReplaceAllString(sql, "") }

// onCoordinator are the tables that stay where every statement goes through: they are small, and
// no query joins them with those that are spread.
var onCoordinator = []string{"promptspool_schema", "small_values"}

func TestEveryTableIsSpreadByAccountOrSmall(t *testing.T) {
	tables := regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*)\)`)
	primaryKey := regexp.MustCompile(`PRIMARY KEY \(account_id, `)
	var seen []string
	for where, sql := range statements(t) {
		m := tables.FindStringSubmatch(sql)
		if m == nil || strings.Contains(sql, "PARTITION OF") || !strings.HasPrefix(where, "schema.sql") {
			continue
		}

		if schema.IsSpread(m[1]) == slices.Contains(onCoordinator, m[1]) {
			t.Errorf("%s: it is not said whether the table %s is spread", where, m[1])
		}
		if schema.IsSpread(m[1]) {
			seen = append(seen, m[1])
			if !primaryKey.MatchString(sql) {
				t.Errorf("%s: the primary key of %s does not begin with account_id, by which it is spread", where, m[1])
			}
		}
	}

	named := strings.Split(strings.Trim(spreadTables, "()"), "|")
	slices.Sort(named)
	if slices.Sort(seen); !slices.Equal(seen, named) {
		t.Errorf("the tables that are spread are %v, the rules know %v", seen, named)
	}
}
