package events

import (
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
)

// A13.
func TestParseAmount(t *testing.T) {
	for in, want := range map[string]string{
		"10": "10", "10.0": "10", "10.00": "10", "0.5": "0.5", "0.50": "0.5", "1": "1", "100": "100", "10.010": "10.01",
		"0.000000000000000001":                                  "0.000000000000000001",
		strings.Repeat("9", 38):                                 strings.Repeat("9", 38),
		strings.Repeat("9", 20) + "." + strings.Repeat("9", 18): strings.Repeat("9", 20) + "." + strings.Repeat("9", 18),
	} {
		got, err := ParseAmount(in)
		if err != nil || got.String() != want {
			t.Errorf("ParseAmount(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "0", "0.0", "0.00", "-1", "+10", "010", "00", "00.5", " 10", "10 ", "1e1", "1E1", "0x10", "10.", ".5", ".", "1.2.3",
		"1,000", "1_000", "١٠", "10\n", "NaN", "Inf", "1\x00", "\xff",
		"0.0000000000000000001", "1.0000000000000000000", // 19 decimals
		strings.Repeat("9", 39), strings.Repeat("9", 21) + "." + strings.Repeat("9", 18), strings.Repeat("1", 1<<20),
	} {
		if got, err := ParseAmount(in); err == nil {
			t.Errorf("ParseAmount(%.40q) = %q, want an error", in, got)
		} else if len(err.Error()) > 300 {
			t.Errorf("ParseAmount(%.40q) fails with %d bytes of text", in, len(err.Error()))
		}
	}
}

func TestAmountIsStoredInCanonicalFormOnly(t *testing.T) {
	var a Amount
	if err := a.UnmarshalText([]byte("10.0")); err == nil {
		t.Error("10.0 was read as stored")
	}
	if _, err := a.MarshalText(); err == nil {
		t.Error("the zero value was written")
	}
}

// The oracle is a decimal library: whatever is taken has the same value there, is its
// own canonical form, and is equal to exactly the amounts of the same value.
func FuzzParseAmount(f *testing.F) {
	for _, s := range []string{"10", "10.00", "0.5", "1e1", "007", "0.000000000000000001", "99999999999999999999999999999999999999", "-0"} {
		f.Add(s, "10")
	}
	f.Fuzz(func(t *testing.T, s, other string) {
		a, err := ParseAmount(s)
		if err != nil {
			return
		}
		value, _, err := apd.NewFromString(s)
		if err != nil || value.Sign() <= 0 {
			t.Fatalf("%q was taken, and the oracle says %v, %v", s, value, err)
		}
		canonical, _, err := apd.NewFromString(a.String())
		if err != nil || canonical.Cmp(value) != 0 {
			t.Fatalf("%q became %q", s, a)
		}
		if again, err := ParseAmount(a.String()); err != nil || again != a {
			t.Fatalf("%q is not its own canonical form: %q, %v", a, again, err)
		}
		if b, err := ParseAmount(other); err == nil {
			oracle, _, _ := apd.NewFromString(other)
			if (a == b) != (value.Cmp(oracle) == 0) {
				t.Fatalf("%q and %q: equal is %v, and the oracle disagrees", s, other, a == b)
			}
		}
	})
}
