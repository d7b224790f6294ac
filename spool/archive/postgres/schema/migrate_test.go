package schema

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestMigrationsMustBeInOrder(t *testing.T) {
	for name, f := range map[string]fstest.MapFS{
		"a gap":                    {"migrations/0002_x.sql": {Data: []byte("-- works with 1\n")}},
		"no promise":               {"migrations/0001_x.sql": {Data: []byte("CREATE TABLE x (y int)")}},
		"a promise that cannot be": {"migrations/0001_x.sql": {Data: []byte("-- works with 2\n")}},
	} {
		if _, err := migrations(f); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if all, err := migrations(Migrations); err != nil || len(all) < 9 {
		t.Errorf("%d migrations are here (%v)", len(all), err)
	}
}

func TestAMigrationIsDividedIntoStatements(t *testing.T) {
	m := migration{sql: "-- works with 1\nCREATE TABLE x (y int);\nDO $$\nBEGIN\n\tDROP TABLE x;\nEND $$;\nSELECT 1;\n"}
	want := []string{
		"-- works with 1\nCREATE TABLE x (y int);\n",
		"DO $$\nBEGIN\n\tDROP TABLE x;\nEND $$;\n",
		"SELECT 1;\n",
		"",
	}
	if got := m.statements(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
