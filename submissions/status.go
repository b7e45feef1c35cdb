package submissions

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/aggregate"
	"holdfast/events"
)

// Status is the truth about a withdrawal, at the moment it was read from the log.
type Status struct {
	ID          events.WithdrawalID
	Tenant      events.Tenant
	Account     string
	Reference   string
	Amount      events.Amount
	Currency    string
	Destination string
	RequestedAt time.Time
	// State says how far it has got, and Since since when.
	State aggregate.State
	Since time.Time
	// Claim is the live claim; nil when nobody holds the withdrawal.
	Claim *aggregate.Claim
	// ReleaseFrom is when the claim can be released at the earliest, because its attempt
	// may be running until then; zero when that is not the matter.
	ReleaseFrom time.Time
	// Outcome is the outcome; nil while there is none.
	Outcome *aggregate.Outcome
	// Dispute is the open dispute; nil when there is none.
	Dispute *aggregate.Dispute
	// PastClaims are the claims that were released, LateAnswers what the rail said when
	// the record had moved on, and ClosedDisputes the disputes that a person has closed;
	// each oldest first.
	PastClaims     []aggregate.PastClaim
	LateAnswers    []aggregate.LateAnswer
	ClosedDisputes []aggregate.ClosedDispute
	// Events is how many events the withdrawal's stream has. Hand it on as Seen when a
	// person resolves or releases what they looked at.
	Events uint64
}

// Holder returns the key that holds the withdrawal, and "" when none does.
func (s Status) Holder() events.RequestKey {
	if s.Claim == nil {
		return ""
	}
	return s.Claim.Key
}

// WaitingSince returns since when somebody has been waited for: since the dispute, or else
// since the claim.
func (s Status) WaitingSince() time.Time {
	switch {
	case s.Dispute != nil:
		return s.Dispute.Since
	case s.Claim != nil:
		return s.Claim.Since
	}
	return s.Since
}

func (c *core) status(w aggregate.Withdrawal) Status { return c.statusAt(w, c.Clock()) }

func (c *core) statusAt(w aggregate.Withdrawal, now time.Time) Status {
	r, at, _ := w.Requested()
	s := Status{
		ID: r.Withdrawal, Tenant: r.Tenant, Account: r.Account, Reference: r.Reference,
		Amount: r.Amount, Currency: r.Currency, Destination: r.Destination, RequestedAt: at,
		PastClaims: slices.Clone(w.PastClaims()), LateAnswers: slices.Clone(w.LateAnswers()), ClosedDisputes: slices.Clone(w.ClosedDisputes()), Events: w.Next(),
	}
	s.State, s.Since = w.State(now)
	if claim, ok := w.Claim(); ok {
		s.Claim = &claim
	}
	if outcome, ok := w.Outcome(); ok {
		outcome.Response.Body = slices.Clone(outcome.Response.Body)
		s.Outcome = &outcome
	} else if s.Claim != nil {
		s.ReleaseFrom, _ = s.Claim.RunningUntil(now, c.ClockMargin)
	}
	if dispute, ok := w.Dispute(); ok {
		s.Dispute = &dispute
	}
	return s
}

// Outcome returns the truth about the withdrawal that a key holds: its outcome, or how
// far it has got. A key that was refused, that lost, or whose claim was released holds
// nothing: it is not-found, as is another tenant's (A6, A14). Other refusals:
// invalid-request, damaged, unavailable.
func (l *Ledger) Outcome(ctx context.Context, key events.RequestKey) (Status, error) {
	if err := errors.Join(l.tenant.Validate(), key.Validate()); err != nil {
		return Status{}, aggregate.Invalid(err)
	}
	if s, found := l.final(ctx, key, ""); found {
		return l.status(s.withdrawal.state), nil
	}
	s, err := l.read(ctx, key, "")
	if err != nil {
		return Status{}, err
	}
	if err := l.claimant(key, &s).Bound(); err != nil {
		return Status{}, refusalOf(err)
	}
	return l.status(s.withdrawal.state), nil
}

// ClaimedBy returns the truth about a withdrawal: who holds it, who held it before, and
// how far it has got. Refusals: invalid-request, not-found, damaged, unavailable.
func (l *Ledger) ClaimedBy(ctx context.Context, id events.WithdrawalID) (Status, error) {
	w, err := l.requested(ctx, id)
	if err != nil {
		return Status{}, err
	}
	return l.status(w), nil
}

// requested reads a withdrawal of this tenant.
func (l *Ledger) requested(ctx context.Context, id events.WithdrawalID) (aggregate.Withdrawal, error) {
	if err := errors.Join(l.tenant.Validate(), id.Validate()); err != nil {
		return aggregate.Withdrawal{}, aggregate.Invalid(err)
	}
	s, err := l.read(ctx, "", id)
	if err != nil {
		return aggregate.Withdrawal{}, err
	}
	return s.withdrawal.state, l.claimant("", &s).Known(id)
}
