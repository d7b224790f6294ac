package keyedtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// Run checks that a store keeps the promises of keyed.Store. open returns an empty one, which
// it closes in t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) keyed.Store) {
	for name, scene := range map[string]func(*testing.T, keyed.Store){
		"what was written comes back byte for byte":     whole,
		"names are in the order of their bytes":         ordered,
		"an account's values are no other's":            apart,
		"a change that fails leaves nothing":            failed,
		"changes of an account do not interleave":       counted,
		"what was not there still is not when it ends":  skewed,
		"a walk meets everything once, kind after kind": walked,
	} {
		t.Run(name, func(t *testing.T) { scene(t, open(t)) })
	}
}

func key(account, name string) keyed.Key {
	return keyed.Key{Kind: "kind", Account: account, Name: name}
}

func write(t *testing.T, s keyed.Store, key keyed.Key, value string) {
	t.Helper()
	if err := s.Write(t.Context(), keyed.Entry{Key: key, Value: json.RawMessage(value)}); err != nil {
		t.Fatal(err)
	}
}

func whole(t *testing.T, s keyed.Store) {
	values := []string{`{"b":1.50,"a":[ ],"b":"<é\u2028\u0000>"}`, `null`, `"` + strings.Repeat("x", 1<<20) + `"`}
	var keys []keyed.Key
	for i, value := range values {
		keys = append(keys, key("acme", fmt.Sprint(i)))
		write(t, s, keys[i], "0")
		write(t, s, keys[i], value)
	}

	got, err := s.Get(t.Context(), append(keys, key("acme", "none"))...)
	if err != nil || len(got) != len(values)+1 || got[len(values)] != nil {
		t.Fatalf("%d values: %v", len(got), err)
	}
	for i, value := range values {
		if string(got[i]) != value {
			t.Errorf("%.60s came back as %.60s", value, got[i])
		}
	}
	if err := s.Write(t.Context(), keyed.Entry{Key: keys[0]}, keyed.Entry{Key: key("acme", "none")}); err != nil {
		t.Error(err)
	}
	if _, found, err := keyed.Load[any](t.Context(), s, keys[0]); found || err != nil {
		t.Errorf("what was deleted is there: %v, %v", found, err)
	}
}

func ordered(t *testing.T, s keyed.Store) {
	all := []string{"", "\x00", "\x00\xff", "A", "a", "a\x00", "a%", "ab", "é", "\xff", "\xff\xff"}
	for _, name := range slices.Backward(all) {
		write(t, s, key("acme", name), "1")
	}
	write(t, s, keyed.Key{Kind: "kind2", Account: "acme", Name: "b"}, "1")

	names := func(from string, skip, limit int) (names []string) {
		page, err := s.Scan(t.Context(), key("acme", from), skip, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			names = append(names, e.Name)
		}
		return names
	}
	for _, c := range []struct {
		got, want []string
	}{
		{names("", 0, 100), all},
		{names("a", 0, 2), all[4:6]},
		{names("a", 2, 2), all[6:8]},
		{names("aa", 0, 1), all[7:8]},
		{names("", len(all)-1, 5), all[len(all)-1:]},
		{names("", len(all), 5), nil},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	}
}

func apart(t *testing.T, s keyed.Store) {
	accounts := []string{"", "a", "ab", "b"}
	for i, account := range accounts {
		write(t, s, key(account, "bc"), fmt.Sprint(i))
	}

	for i, account := range accounts {
		values, err := keyed.List[int](t.Context(), s, key(account, ""))
		if err != nil || len(values) != 1 || *values[0].Of != i || values[0].Key != key(account, "bc") {
			t.Errorf("account %q has %+v, %v", account, values, err)
		}
	}
}

func failed(t *testing.T, s keyed.Store) {
	refused := wire.Errorf(wire.CodeConflict, "No.")
	err := s.Change(t.Context(), "acme", true, func(tx *keyed.Tx) error {
		return errors.Join(tx.Put(key("acme", "a"), 1), refused)
	})
	if !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
	if _, found, err := keyed.Load[int](t.Context(), s, key("acme", "a")); found || err != nil {
		t.Errorf("something is there: %v, %v", found, err)
	}
}

// atOnce calls fn several times at the same time.
func atOnce(t *testing.T, fn func(ctx context.Context, n int) error) {
	t.Helper()
	var calls sync.WaitGroup
	for n := range 20 {
		calls.Go(func() {
			if err := fn(t.Context(), n); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

func counted(t *testing.T, s keyed.Store) {
	atOnce(t, func(ctx context.Context, n int) error {
		return s.Change(ctx, "acme", false, func(tx *keyed.Tx) error {
			count, _, err := keyed.Load[int](ctx, tx, key("acme", "count"))
			return errors.Join(err, tx.Put(key("acme", "count"), count+1), tx.Put(key("acme", fmt.Sprint(n)), n))
		})
	})
	if count, _, err := keyed.Load[int](t.Context(), s, key("acme", "count")); count != 20 || err != nil {
		t.Errorf("%d were counted, %v", count, err)
	}
}

// Each looks for the others' keys and writes another one.
func skewed(t *testing.T, s keyed.Store) {
	atOnce(t, func(ctx context.Context, n int) error {
		return s.Change(ctx, "", false, func(tx *keyed.Tx) error {
			others, err := tx.Scan(ctx, key("", ""), 0, 1)
			if err != nil || len(others) > 0 {
				return err
			}
			return tx.Put(key("", fmt.Sprint(n)), n)
		})
	})
	if all, err := keyed.List[int](t.Context(), s, key("", "")); len(all) != 1 || err != nil {
		t.Errorf("%d were the only one, %v", len(all), err)
	}
}

func walked(t *testing.T, s keyed.Store) {
	want := map[keyed.Key]bool{}
	for _, kind := range []keyed.Kind{"a", "b", "bc"} {
		for _, account := range []string{"", "acme", "acmed", "b"} {
			for n := range 3 {
				k := keyed.Key{Kind: kind, Account: account, Name: fmt.Sprint(n)}
				write(t, s, k, "1")
				want[k] = true
			}
		}
	}

	var kinds []keyed.Kind
	for after := (keyed.Key{}); ; {
		page, err := s.Walk(t.Context(), after, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			after = e.Key
			if !want[after] {
				t.Errorf("%+v comes again, or from nowhere", after)
			}
			delete(want, after)
			kinds = append(kinds, after.Kind)
		}
	}
	kinds = slices.Compact(kinds)
	if len(want) > 0 || len(kinds) != 3 {
		t.Errorf("%v are missing; the kinds were %v", want, kinds)
	}

	of := 0
	err := keyed.EachOfAll(t.Context(), s, "b", func(keyed.Key, *int) error {
		of++
		return nil
	})
	if of != 12 || err != nil {
		t.Errorf("%d values of a kind, %v", of, err)
	}
}
