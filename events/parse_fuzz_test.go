package events

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// What is taken for a timestamp is exactly what would be written for it, and the clock
// library reads the same instant.
func FuzzTimestamp(f *testing.F) {
	for _, s := range []string{
		"2026-05-03T12:00:00.000000Z", "2026-05-03T12:00:00,000000Z", "0000-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z",
		"9999-12-31T23:59:59.999999Z", "2026-02-29T00:00:00.000000Z", "2024-02-29T00:00:00.000000Z", "2026-05-03T24:00:00.000000Z",
		"2026-05-03T23:59:60.000000Z", "2026-05-03T12:00:00Z", "2026-05-03t12:00:00.000000z", "2026-05-03T12:00:00.000000+00:00", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var at Timestamp
		if at.UnmarshalText([]byte(s)) != nil {
			if at != (Timestamp{}) {
				t.Fatalf("%q was refused, and left %s behind", s, at)
			}
			return
		}
		if written, err := at.MarshalText(); err != nil || string(written) != s {
			t.Fatalf("%q was read, and is written as %q, %v", s, written, err)
		}
		if want, err := time.Parse(time.RFC3339Nano, s); err != nil || !want.Equal(at.Time()) {
			t.Fatalf("%q is %s, and RFC 3339 says %s, %v", s, at, want, err)
		}
	})
}

// A fingerprint that is taken has the one form that is written, and matches no identity
// that it was not made of.
func FuzzFingerprint(f *testing.F) {
	id := MintWithdrawalID(DefaultTenant, "alice", "order-1")
	amount, err := ParseAmount("10.25")
	if err != nil {
		f.Fatal(err)
	}
	own := Identity{Withdrawal: id, Amount: amount, Currency: "EUR", Destination: "DE89"}
	f.Add(string(own.Fingerprint()), string(id), "10.250", "EUR", "DE89")
	f.Add(strings.ToUpper(string(own.Fingerprint())), string(id), "10.2", "5EUR", "DE89")
	f.Add("v2:"+strings.Repeat("0", 64), "", "1", "", "")
	f.Fuzz(func(t *testing.T, text, withdrawal, money, currency, destination string) {
		print := Fingerprint(text)
		if err := print.Validate(); err == nil && (len(text) != len(fingerprintV1)+64 || strings.ToLower(text) != text) {
			t.Errorf("%q was taken for a fingerprint", text)
		}
		amount, err := ParseAmount(money)
		if err != nil {
			return
		}
		other := Identity{Withdrawal: WithdrawalID(withdrawal), Amount: amount, Currency: currency, Destination: destination}
		if err := other.Fingerprint().Validate(); err != nil {
			t.Errorf("%+v: %v", other, err)
		}
		same := len(own.Differences(other)) == 0
		if own.Fingerprint().Matches(other) != same || (own == other) != same {
			t.Errorf("%+v and %+v: the same %v, the fingerprint matches %v", own, other, same, own.Fingerprint().Matches(other))
		}
		if print.Matches(other) && print.Validate() != nil {
			t.Errorf("%q matches, and is not valid", text)
		}
	})
}

// Names that are taken are within their limits and of their characters, every refusal can
// be shown on one line, and no two tenants and keys share a stream.
func FuzzNames(f *testing.F) {
	f.Add("req-1", "req-1 ")
	f.Add("K1", "k1")
	f.Add(string(MintWithdrawalID(DefaultTenant, "alice", "order-1")), "EUR")
	f.Add("\u00e9", "e\u0301")
	f.Add(strings.Repeat("x", MaxKey), strings.Repeat("x", MaxKey+1))
	f.Add("a\u2028b", "\xff\x00\x7f")
	f.Add("-", "withdrawal-")
	f.Fuzz(func(t *testing.T, s, other string) {
		for name, c := range map[string]struct {
			err     error
			most    int
			allowed func(rune) bool
		}{
			"key":           {RequestKey(s).Validate(), MaxKey, visible},
			"reference":     {ValidateReference(s), MaxReference, visible},
			"tenant":        {Tenant(s).Validate(), MaxTenant, visible},
			"account":       {ValidateAccount(s), MaxAccount, visible},
			"currency":      {ValidateCurrency(s), MaxCurrency, func(r rune) bool { return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' }},
			"withdrawal id": {WithdrawalID(s).Validate(), withdrawalIDLen, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '2' && r <= '7' }},
			"destination":   {ValidateDestination(s), MaxDestination, func(r rune) bool { return r != '\n' && r != 0x7f && r >= ' ' }},
			"actor":         {ValidateName("actor", s), MaxName, func(r rune) bool { return r != '\u2028' && r >= ' ' }},
			"reason":        {ValidateText("reason", s), MaxText, func(r rune) bool { return r != '\u202e' && r >= ' ' }},
		} {
			if c.err != nil {
				if text := c.err.Error(); strings.ContainsAny(text, "\n\x00\x1b") || !utf8.ValidString(text) || len(text) > 400 {
					t.Errorf("%s: the refusal of %q cannot be shown: %q", name, s, text)
				}
				continue
			}
			if s == "" || len(s) > c.most || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !c.allowed(r) }) {
				t.Errorf("%s: %q was taken", name, s)
			}
		}
		if (RequestKey(s).Stream(DefaultTenant) == RequestKey(other).Stream(DefaultTenant)) != (s == other) {
			t.Errorf("%q and %q share a stream", s, other)
		}
		if s != other && RequestKey(s).Stream(Tenant(other)) == RequestKey(other).Stream(Tenant(s)) {
			t.Errorf("key and tenant %q, %q can be exchanged", s, other)
		}
		if id := MintWithdrawalID(Tenant(s), other, s); id.Validate() != nil {
			t.Errorf("%q was minted", id)
		}
		if id, ok := WithdrawalOfStream(s); ok && id.Stream() != s {
			t.Errorf("%q is the stream of %q, which is %q", s, id, id.Stream())
		}
	})
}

func visible(r rune) bool { return r > ' ' && r <= '~' }
