package events

import (
	"strings"
	"testing"
	"time"
)

// A13, and FAULTS: keys that differ in case or blanks are different keys, or none.
func TestRequestKeys(t *testing.T) {
	for _, k := range []RequestKey{"k", "K1", "k1", "a/b?c#d%20", "{}~!", RequestKey(strings.Repeat("k", 255))} {
		if err := k.Validate(); err != nil {
			t.Errorf("key %q: %v", k, err)
		}
	}
	for _, k := range []RequestKey{"", " ", "K1 ", " K1", "a b", "k\n", "k\x00", "k\x7f", "schlüssel", RequestKey(strings.Repeat("k", 256)), "\xff"} {
		if err := k.Validate(); err == nil {
			t.Errorf("key %q was taken", k)
		}
	}
	streams := map[string]string{}
	for _, k := range []struct {
		tenant Tenant
		key    RequestKey
	}{{"a", "K1"}, {"a", "k1"}, {"a", "k"}, {"a", "1k"}, {"ak", "1"}, {"b", "K1"}, {"a", "K1K1"}} {
		stream := k.key.Stream(k.tenant)
		if other, taken := streams[stream]; taken {
			t.Errorf("%v and %s share a stream", k, other)
		}
		streams[stream] = string(k.tenant) + "/" + string(k.key)
		if !IsRequestKeyStream(stream) {
			t.Errorf("%s is not taken for a key's stream", stream)
		}
	}
}

// FAULTS: no prefix of an id is taken for the id.
func TestWithdrawalIDs(t *testing.T) {
	id := MintWithdrawalID(DefaultTenant, "alice", "order-1")
	if err := id.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []WithdrawalID{"", "w", "w1", id[:len(id)-1], id + "a", WithdrawalID(strings.ToUpper(string(id))), "x" + id[1:], id[:5] + "1" + id[6:], id + "\n"} {
		if err := bad.Validate(); err == nil {
			t.Errorf("id %q was taken", bad)
		}
	}
	if got, ok := WithdrawalOfStream(id.Stream()); !ok || got != id {
		t.Errorf("the stream of %s is taken for %s's", id, got)
	}
	if _, ok := WithdrawalOfStream(RequestKey("k").Stream("t")); ok {
		t.Error("a key's stream was taken for a withdrawal's")
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for name, c := range map[string]struct {
		validate  func(string) error
		good, bad []string
	}{
		"tenant":      {func(s string) error { return Tenant(s).Validate() }, []string{"default", "a.b-c_d~1"}, []string{"", "a b", "ä", long}},
		"account":     {ValidateAccount, []string{"alice", "a:b"}, []string{"", "a/b", "a b", long}},
		"reference":   {ValidateReference, []string{"order-1", "#1/2"}, []string{"", "a b", "é", long}},
		"currency":    {ValidateCurrency, []string{"EUR", "USDT", "1INCH"}, []string{"", "eur", "EU R", "ABCDEFGHIJKLMNOPQ"}},
		"destination": {ValidateDestination, []string{"DE89 3704", "0xAb", "Müller & Söhne"}, []string{"", " x", "x ", "a\nb", "\xff", "a\u200bb", long}},
		"reason":      {func(s string) error { return ValidateText("reason", s) }, []string{"I looked"}, []string{"", " ", "\t", long}},
		"actor":       {func(s string) error { return ValidateName("actor", s) }, []string{"ann"}, []string{"", "a\x1b[31m", long}},
	} {
		for _, s := range c.good {
			if err := c.validate(s); err != nil {
				t.Errorf("%s %q: %v", name, s, err)
			}
		}
		for _, s := range c.bad {
			if err := c.validate(s); err == nil {
				t.Errorf("%s %.40q was taken", name, s)
			} else if !strings.HasPrefix(err.Error(), name) || len(err.Error()) > 300 {
				t.Errorf("%s %.40q: the error does not name the field shortly: %v", name, s, err)
			}
		}
	}
}

// FAULTS: the fingerprint is over typed, canonical fields only, and tells any two apart.
func TestFingerprint(t *testing.T) {
	ten, _ := ParseAmount("10")
	tenToo, _ := ParseAmount("10.00")
	base := Identity{"w1", ten, "EUR", "here"}
	if base.Fingerprint() != (Identity{"w1", tenToo, "EUR", "here"}).Fingerprint() {
		t.Error("10 and 10.00 have different fingerprints")
	}
	if err := base.Fingerprint().Validate(); err != nil {
		t.Error(err)
	}
	eleven, _ := ParseAmount("11")
	for field, other := range map[string]Identity{
		"withdrawal":  {"w2", ten, "EUR", "here"},
		"amount":      {"w1", eleven, "EUR", "here"},
		"currency":    {"w1", ten, "USD", "here"},
		"destination": {"w1", ten, "EUR", "Here"},
	} {
		if base.Fingerprint() == other.Fingerprint() {
			t.Errorf("another %s has the same fingerprint", field)
		}
		if got := base.Differences(other); len(got) != 1 || got[0] != field {
			t.Errorf("another %s: the differences are %v", field, got)
		}
	}
	// The fields are length-prefixed: moving a character across a boundary shows.
	if (Identity{"w1", ten, "EURh", "ere"}).Fingerprint() == base.Fingerprint() {
		t.Error("a moved boundary has the same fingerprint")
	}
	if Fingerprint("v2:"+strings.Repeat("a", 64)).Validate() == nil {
		t.Error("an unknown version was taken")
	}
}

func TestTimestamps(t *testing.T) {
	at := At(time.Date(2030, 1, 2, 3, 4, 5, 123456789, time.FixedZone("x", 3600)))
	text, err := at.MarshalText()
	if err != nil || string(text) != "2030-01-02T02:04:05.123456Z" {
		t.Fatalf("got %s, %v", text, err)
	}
	var back Timestamp
	if err := back.UnmarshalText(text); err != nil || back != at {
		t.Errorf("got %v, %v", back, err)
	}
	for _, bad := range []string{"", "2030-01-02T02:04:05Z", "2030-01-02T02:04:05.123456+01:00", "2030-01-02T02:04:05.1234567Z", "2030-02-30T02:04:05.123456Z", "2030-01-02 02:04:05.123456Z"} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if _, err := (Timestamp{}).MarshalText(); err == nil {
		t.Error("the zero timestamp was written")
	}
}
