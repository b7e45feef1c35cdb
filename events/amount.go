package events

import (
	"fmt"
	"strings"
)

// Limits of an Amount, in decimal digits as written.
const (
	MaxAmountDigits   = 38
	MaxAmountDecimals = 18
)

// Amount is an exact, positive amount of money: at most 38 decimal digits, at most 18
// of them after the point. Two amounts are equal exactly when they compare equal with
// ==, because an Amount only holds the canonical form: no trailing zeros after the
// point, no point without decimals. The zero value is not a valid amount.
type Amount struct{ canonical string }

// ParseAmount reads an amount such as "10", "10.0" or "0.000001". It refuses (A13)
// signs, exponents, blanks, leading zeros, a point without digits on both sides, zero,
// and anything over the limits; the error says which.
func ParseAmount(s string) (Amount, error) {
	whole, decimals, pointed := strings.Cut(s, ".")
	fail := func(why string) (Amount, error) {
		return Amount{}, fmt.Errorf("amount %s %s; write digits with at most one point, such as 10 or 10.25", Quote(s), why)
	}
	switch {
	case s == "":
		return fail("is empty")
	case len(s) > MaxAmountDigits+1:
		return fail(fmt.Sprintf("is longer than %d digits", MaxAmountDigits))
	case strings.Trim(whole, "0123456789") != "" || strings.Trim(decimals, "0123456789") != "":
		return fail("has a character that is not a digit or a point")
	case whole == "" || pointed && decimals == "":
		return fail("needs a digit on each side of the point")
	case len(whole) > 1 && whole[0] == '0':
		return fail("starts with a needless zero")
	case len(whole)+len(decimals) > MaxAmountDigits:
		return fail(fmt.Sprintf("has more than %d digits", MaxAmountDigits))
	case len(decimals) > MaxAmountDecimals:
		return fail(fmt.Sprintf("has more than %d digits after the point", MaxAmountDecimals))
	}
	canonical := whole
	if decimals = strings.TrimRight(decimals, "0"); decimals != "" {
		canonical += "." + decimals
	}
	if canonical == "0" {
		return fail("is not more than zero")
	}
	return Amount{canonical}, nil
}

// Equal reports whether two amounts are the same; == does as well.
func (a Amount) Equal(b Amount) bool { return a == b }

// String returns the canonical form.
func (a Amount) String() string { return a.canonical }

// MarshalText returns the canonical form; the zero value is an error.
func (a Amount) MarshalText() ([]byte, error) { return a.AppendText(nil) }

// AppendText appends the canonical form; the zero value is an error.
func (a Amount) AppendText(to []byte) ([]byte, error) {
	if a.canonical == "" {
		return to, fmt.Errorf("amount is not set")
	}
	return append(to, a.canonical...), nil
}

// UnmarshalText reads the canonical form only: what was stored is either exactly what
// we would have written, or it is not ours.
func (a *Amount) UnmarshalText(text []byte) error {
	parsed, err := ParseAmount(string(text))
	if err != nil {
		return err
	}
	if parsed.canonical != string(text) {
		return fmt.Errorf("amount %s is not in canonical form (%s)", Quote(string(text)), parsed)
	}
	*a = parsed
	return nil
}
