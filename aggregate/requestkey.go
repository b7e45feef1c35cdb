package aggregate

import (
	"fmt"

	"holdfast/events"
)

// RequestKey is the state of a key's stream: its reservations, of which the last one
// counts. The zero value is a key that was never used.
type RequestKey struct {
	next uint64
	last events.KeyReserved
}

// Standing says what became of a key's last reservation.
type Standing int

const (
	// Free: the key was never used.
	Free Standing = iota
	// Pending: the withdrawal has no event yet at the reserved revision. The key
	// belongs to that withdrawal and to no other.
	Pending
	// Bound: the withdrawal's event at the reserved revision is this key's claim, and
	// it has not been released.
	Bound
	// Void: the withdrawal moved on without this key. The key is free again.
	Void
)

// Next returns the revision of the key's next event.
func (k RequestKey) Next() uint64 { return k.next }

// Reserved returns the withdrawal that the key's last reservation points at, and false
// for a key that was never used.
func (k RequestKey) Reserved() (events.WithdrawalID, bool) {
	return k.last.Withdrawal, k.next > 0
}

// Apply folds the next event of the key's stream. An error means that the stream is
// damaged: the event can not be one of this stream.
func (k RequestKey) Apply(r events.Recorded) (RequestKey, error) {
	e, ok := r.Event.(events.KeyReserved)
	switch {
	case !ok:
		return k, fmt.Errorf("%s can not be in a key's stream", r.Event.Type())
	case e.Key.Stream(e.Tenant) != r.Stream:
		return k, fmt.Errorf("the reservation is for another key than the stream's")
	}
	return RequestKey{next: k.next + 1, last: e}, nil
}

// Standing says what became of the key's last reservation, given the state of the
// withdrawal that it points at, read after the key was. An error means that the log is
// damaged: the withdrawal is shorter than it was when the reservation was made.
func (k RequestKey) Standing(reserved Withdrawal) (Standing, error) {
	if k.next == 0 {
		return Free, nil
	}
	switch at := k.last.At; {
	case at > reserved.next:
		return Void, &events.Damage{
			Stream: k.last.Withdrawal.Stream(), Revision: reserved.next, Kind: events.FaultTruncated,
			Reason: fmt.Sprintf("a reservation was made at revision %d, and the stream only has %d events", at, reserved.next),
		}
	case at == reserved.next:
		return Pending, nil
	case reserved.claim != nil && reserved.claim.Revision == at && reserved.claim.Key == k.last.Key:
		return Bound, nil
	}
	return Void, nil
}
