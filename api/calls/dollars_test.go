package calls

import "testing"

func TestDollars(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "0.0": "0", "1": "1", "-1.5": "-1.5", "0.00000275": "0.00000275",
		"2.75e-6": "0.00000275", "1E3": "1000",
		"0.0000000005": "0.000000001", "0.00000000049": "0", "123456789.123456789": "123456789.123456789", "1e-30": "0",
	} {
		d, err := ParseDollars(text)
		if err != nil || d.String() != want {
			t.Errorf("%s is %s (%v), not %s", text, d, err, want)
		}
		var back Dollars
		if err := back.UnmarshalJSON([]byte(d.String())); err != nil || back != d {
			t.Errorf("%s comes back as %s (%v)", d, back, err)
		}
	}
	for _, bad := range []string{"", "-", "free", "1e999", "1e", "9000000001", `"1"`, "1.2.3", "0x10", "NaN"} {
		if d, err := ParseDollars(bad); err == nil {
			t.Errorf("%q was parsed as %s", bad, d)
		}
	}
}
