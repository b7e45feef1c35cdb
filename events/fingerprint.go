package events

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Identity is what a request key stands for: the withdrawal and what it pays.
type Identity struct {
	Withdrawal  WithdrawalID
	Amount      Amount
	Currency    string
	Destination string
}

// Fingerprint is a digest of an Identity: "v1:" and a SHA-256 in hexadecimal. It is over
// typed, canonical fields only, each preceded by its length, and over nothing that
// changes from one retry to the next.
type Fingerprint string

const fingerprintV1 = "v1:"

// Fingerprint returns the identity's fingerprint, in today's version.
func (i Identity) Fingerprint() Fingerprint {
	sum := digestFields("holdfast/fingerprint/v1", string(i.Withdrawal), i.Amount.String(), i.Currency, i.Destination)
	var text [len(fingerprintV1) + 2*len(sum)]byte
	hex.Encode(text[copy(text[:], fingerprintV1):], sum[:])
	return Fingerprint(text[:])
}

// Matches reports whether the fingerprint is the identity's, in the version that the
// fingerprint was made in, so that claims outlive a change of the algorithm.
func (f Fingerprint) Matches(i Identity) bool { return f == i.Fingerprint() }

// Differences names the fields in which two identities differ, in a fixed order. It
// names them only: values never pass from one caller to another (A3).
func (i Identity) Differences(other Identity) []string {
	var fields []string
	if i.Withdrawal != other.Withdrawal {
		fields = append(fields, "withdrawal")
	}
	if i.Amount != other.Amount {
		fields = append(fields, "amount")
	}
	if i.Currency != other.Currency {
		fields = append(fields, "currency")
	}
	if i.Destination != other.Destination {
		fields = append(fields, "destination")
	}
	return fields
}

// Validate returns an error unless the fingerprint is of a version that is known here.
func (f Fingerprint) Validate() error {
	digest, ok := strings.CutPrefix(string(f), fingerprintV1)
	if !ok || len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "" {
		return fmt.Errorf("fingerprint %s is not of a known version", Quote(string(f)))
	}
	return nil
}
