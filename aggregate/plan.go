package aggregate

import (
	"time"

	"holdfast/events"
)

// Plan is what a decision wants appended: Key to the key's stream and then Withdrawal
// to the withdrawal's stream, each at the revision that the decision was made at.
type Plan struct {
	Key        []events.Event
	Withdrawal []events.Event
}

// Empty reports whether there is nothing to write: what was asked for is already so.
func (p Plan) Empty() bool { return len(p.Key) == 0 && len(p.Withdrawal) == 0 }

// Claimant is a key that wants to act on a withdrawal, with what the log says of both:
// the key's stream was read first, then the withdrawal's, then (where it is another) the
// stream of the withdrawal that the key's last reservation points at.
type Claimant struct {
	Tenant events.Tenant
	Key    events.RequestKey
	// Now is the time by the clock of whoever decides. It only ever tells apart
	// sending and unknown, and whether an attempt may still be running.
	Now        time.Time
	KeyState   RequestKey
	Withdrawal Withdrawal
	// Reserved is the withdrawal that KeyState's last reservation points at: the same
	// as Withdrawal when it is that one, the zero value when the key was never used.
	Reserved Withdrawal
}

// holds reports whether the key holds the withdrawal's claim.
func (c Claimant) holds() bool {
	w := c.Withdrawal
	return w.claim != nil && w.claim.Key == c.Key
}

// Known refuses a withdrawal that was never requested, or that is another tenant's: the
// two look the same from outside (A11, A14).
func (c Claimant) Known(id events.WithdrawalID) error {
	r, _, ok := c.Withdrawal.Requested()
	if ok && r.Tenant == c.Tenant {
		return nil
	}
	// A key's own reservation proves that there was such a withdrawal (D5).
	if reserved, used := c.KeyState.Reserved(); used && reserved == id {
		if _, err := c.KeyState.Standing(c.Reserved); err != nil {
			return err
		}
	}
	return notFoundWithdrawal(id)
}

// Bound refuses a key that holds no claim: it was never used, it lost, it was refused,
// or its claim was released (A6). The claimant's Withdrawal is the one that the key's
// last reservation points at.
func (c Claimant) Bound() error {
	standing, err := c.KeyState.Standing(c.Reserved)
	if err != nil {
		return err
	}
	if standing == Bound {
		return nil
	}
	for _, past := range c.Reserved.past {
		if standing == Void && past.Key == c.Key && past.Revision == c.KeyState.last.At {
			return c.notFoundReleased(past)
		}
	}
	return notFoundKey(c.Key)
}

func (c Claimant) notFoundReleased(past PastClaim) error {
	r := refuse(CodeNotFound, "key %s holds nothing any more: its claim on withdrawal %s was released by %s at %s",
		events.Quote(string(c.Key)), c.Reserved.requested.Withdrawal, past.ReleasedBy, events.At(past.ReleasedAt))
	r.Key, r.Withdrawal = c.Key, c.Reserved.requested.Withdrawal
	return r
}

func notFoundWithdrawal(id events.WithdrawalID) error {
	r := refuse(CodeNotFound, "there is no withdrawal %s; withdrawals are requested first, and the request says the id", id)
	r.Withdrawal = id
	return r
}

func notFoundKey(key events.RequestKey) error {
	r := refuse(CodeNotFound, "key %s holds no claim and has no outcome", events.Quote(string(key)))
	r.Key = key
	return r
}

// claim decides whether a key that does not hold the withdrawal may take it, and plans
// the reservation that comes first, the claim, and what follows under it. It refuses what
// another key holds (A5), what is disputed unless a person is resolving it (B7), and a key
// that stands for another submission (A3).
func (c Claimant) claim(next events.Event, resolving bool) (p Plan, err error) {
	w := c.Withdrawal
	if w.claim != nil {
		return p, c.claimedByAnother()
	}
	if w.dispute != nil && !resolving {
		return p, w.disputed()
	}
	standing, err := c.KeyState.Standing(c.Reserved)
	if err != nil {
		return p, err
	}
	if standing == Pending || standing == Bound {
		last := c.KeyState.last
		if last.Withdrawal != w.requested.Withdrawal || !last.Fingerprint.Matches(w.Identity()) {
			return p, c.keyReused()
		}
	}
	fingerprint := w.Identity().Fingerprint()
	if standing != Pending { // else it is our own, at this very revision: go on with it
		p.Key = []events.Event{events.KeyReserved{
			Tenant: c.Tenant, Key: c.Key, Withdrawal: w.requested.Withdrawal, Fingerprint: fingerprint, At: w.next,
		}}
	}
	p.Withdrawal = []events.Event{events.KeyClaimed{Key: c.Key, Fingerprint: fingerprint}, next}
	return p, nil
}

func (c Claimant) claimedByAnother() error {
	w := c.Withdrawal
	r := refuse(CodeWithdrawalClaimed, "withdrawal %s is held by key %s", w.requested.Withdrawal, events.Quote(string(w.claim.Key)))
	r.Withdrawal, r.Key, r.Holder, r.Since = w.requested.Withdrawal, c.Key, w.claim.Key, w.claim.Since
	return r
}

func (c Claimant) keyReused() error {
	reserved := c.Reserved.Identity()
	r := refuse(CodeKeyReused, "key %s stands for withdrawal %s; submit this one under a key of its own",
		events.Quote(string(c.Key)), reserved.Withdrawal)
	r.Key, r.Withdrawal = c.Key, reserved.Withdrawal
	r.Fields = reserved.Differences(c.Withdrawal.Identity())
	return r
}

func (w Withdrawal) disputed() error {
	id := w.requested.Withdrawal
	r := refuse(CodeDisputed, "the rail's late answer for withdrawal %s contradicts the record; nothing is sent until a person resolves it", id)
	r.Withdrawal, r.Key, r.Since = id, w.dispute.Key, w.dispute.Since
	return r
}
