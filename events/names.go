package events

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of names, in bytes.
const (
	MaxKey         = 255
	MaxTenant      = 64
	MaxAccount     = 128
	MaxReference   = 255
	MaxCurrency    = 16
	MaxDestination = 512
	// MaxText is the longest free text that a person writes: a reason, evidence.
	MaxText = 1024
	// MaxName is the longest name of who or what acted: an actor, a rail.
	MaxName = 128
)

// Tenant is whose withdrawals and keys these are (A14). A key is unique within its
// tenant.
type Tenant string

// DefaultTenant is the tenant where nobody cares.
const DefaultTenant Tenant = "default"

// RequestKey is the caller's idempotency key for one submission: 1 to 255 visible
// ASCII characters, compared byte for byte.
type RequestKey string

// WithdrawalID is the id of one withdrawal, minted when it is requested.
type WithdrawalID string

// Validate returns an error that says what is wrong with the tenant's name: it is 1
// to 64 letters, digits, '.', '_', '~' or '-'.
func (t Tenant) Validate() error {
	return validateSimple("tenant", string(t), MaxTenant)
}

// Validate returns an error that says what is wrong with the key (A13).
func (k RequestKey) Validate() error {
	return validateVisible("key", string(k), MaxKey)
}

// withdrawalIDLen is a 'w' and 160 bits in base32.
const withdrawalIDLen = 1 + 32

// idAlphabet is base32 in small letters.
const idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

var idEncoding = base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding)

// MintWithdrawalID returns the id of the withdrawal that an account of a tenant
// requests under a business reference. The same three always give the same id, so that
// a repeated request finds the first one (A11), and different ones never do: the id is
// 160 bits of a SHA-256.
func MintWithdrawalID(t Tenant, account, reference string) WithdrawalID {
	sum := digestFields("holdfast/withdrawal-id/v1", string(t), account, reference)
	id := [withdrawalIDLen]byte{'w'}
	idEncoding.Encode(id[1:], sum[:20])
	return WithdrawalID(id[:])
}

// Validate returns an error when the id is not in the form that MintWithdrawalID
// gives: it cannot be the id of any withdrawal.
func (id WithdrawalID) Validate() error {
	if len(id) != withdrawalIDLen || id[0] != 'w' || strings.Trim(string(id[1:]), idAlphabet) != "" {
		return fmt.Errorf("withdrawal id %s is not one of ours: it is a w and 32 characters of a-z and 2-7, as printed when the withdrawal was requested", Quote(string(id)))
	}
	return nil
}

// Stream returns the name of the withdrawal's stream.
func (id WithdrawalID) Stream() string { return "withdrawal-" + string(id) }

// WithdrawalOfStream returns the id of the withdrawal whose stream it is, and false
// for any other stream.
func WithdrawalOfStream(stream string) (WithdrawalID, bool) {
	id, ok := strings.CutPrefix(stream, "withdrawal-")
	return WithdrawalID(id), ok
}

// Stream returns the name of the key's stream within its tenant. The key itself is in
// the stream's events; its name only holds a digest, so that any key fits and no key
// can be chosen to collide with another.
func (k RequestKey) Stream(t Tenant) string {
	sum := digestFields(string(t), string(k))
	var name [len(requestKeyPrefix) + requestKeyDigest]byte
	idEncoding.Encode(name[copy(name[:], requestKeyPrefix):], sum[:])
	return string(name[:])
}

const (
	requestKeyPrefix = "requestkey-"
	requestKeyDigest = 52 // characters: 256 bits in base32
)

// IsRequestKeyStream reports whether a stream holds the reservations of a key.
func IsRequestKeyStream(stream string) bool { return strings.HasPrefix(stream, requestKeyPrefix) }

// ValidateAccount returns an error that says what is wrong with an account's name: it
// is 1 to 128 letters, digits, '.', '_', '~', ':' or '-'.
func ValidateAccount(s string) error { return validateSimple("account", s, MaxAccount) }

// ValidateReference returns an error that says what is wrong with a business
// reference: it is 1 to 255 visible ASCII characters.
func ValidateReference(s string) error { return validateVisible("reference", s, MaxReference) }

// ValidateCurrency returns an error that says what is wrong with a currency: it is 1
// to 16 capital letters and digits, such as EUR or USDT.
func ValidateCurrency(s string) error {
	if s == "" || len(s) > MaxCurrency {
		return fmt.Errorf("currency %s must have 1 to %d characters, such as EUR or USDT", Quote(s), MaxCurrency)
	}
	if strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
		return fmt.Errorf("currency %s may only have capital letters and digits, such as EUR or USDT", Quote(s))
	}
	return nil
}

// ValidateDestination returns an error that says what is wrong with a destination: it
// is 1 to 512 bytes of printable text, without a blank at either end.
func ValidateDestination(s string) error { return validateText("destination", s, MaxDestination) }

// ValidateText returns an error that says what is wrong with a text that a person
// writes (a reason, evidence): it is 1 to 1024 bytes of printable text, without a blank
// at either end. The name says what text it is.
func ValidateText(name, s string) error { return validateText(name, s, MaxText) }

// ValidateName returns an error that says what is wrong with the name of who acts or of
// what acts (an actor, a rail): it is 1 to 128 bytes of printable text. The kind says
// what it is the name of.
func ValidateName(kind, s string) error { return validateText(kind, s, MaxName) }

// Quote renders input for an error message: quoted, and cut down when long.
func Quote(s string) string {
	const most = 60
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return fmt.Sprintf("%+q… (%d bytes)", s[:cut], len(s))
	}
	return fmt.Sprintf("%+q", s)
}

func validateLength(name, s string, most int) error {
	if s == "" {
		return fmt.Errorf("%s is empty", name)
	}
	if len(s) > most {
		return fmt.Errorf("%s %s is longer than %d bytes", name, Quote(s), most)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s %s is not valid UTF-8", name, Quote(s))
	}
	return nil
}

func validateSimple(name, s string, most int) error {
	if err := validateLength(name, s, most); err != nil {
		return err
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._~:-", c) >= 0 {
			continue
		}
		return fmt.Errorf("%s %s has a character that is not allowed at byte %d; use letters, digits and . _ ~ : -", name, Quote(s), i+1)
	}
	return nil
}

func validateVisible(name, s string, most int) error {
	if err := validateLength(name, s, most); err != nil {
		return err
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return fmt.Errorf("%s %s has a character that is not visible ASCII at byte %d", name, Quote(s), i+1)
		}
	}
	return nil
}

func validateText(name, s string, most int) error {
	if err := validateLength(name, s, most); err != nil {
		return err
	}
	for i, r := range s {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%s %s has a character that cannot be printed at byte %d", name, Quote(s), i+1)
		}
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' {
		return fmt.Errorf("%s %s starts or ends with a blank", name, Quote(s))
	}
	return nil
}

// digestFields is SHA-256 over fields that are each preceded by their length in bytes
// (64 bits, big endian), so that no two lists of fields have the same input.
func digestFields(fields ...string) [sha256.Size]byte {
	var room [384]byte // enough for nearly every event, and not on the heap
	input := room[:0]
	for _, f := range fields {
		input = appendField(input, f)
	}
	return sha256.Sum256(input)
}

func appendField[T string | []byte](input []byte, field T) []byte {
	input = binary.BigEndian.AppendUint64(input, uint64(len(field)))
	return append(input, field...)
}
