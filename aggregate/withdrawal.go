package aggregate

import (
	"fmt"
	"time"

	"holdfast/events"
)

// Withdrawal is the state of a withdrawal's stream. The zero value is a withdrawal that
// was never requested. It is a value: Apply returns the next state and leaves this one
// as it was.
type Withdrawal struct {
	next      uint64
	requested events.WithdrawalRequested
	since     time.Time
	claim     *Claim   // live: taken and not released; kept when there is an outcome
	outcome   *Outcome // final
	dispute   *Dispute
	attempts  int
	past      []PastClaim
	late      []LateAnswer
	closed    []ClosedDispute
}

// Claim is a live claim: its holder alone may submit the withdrawal.
type Claim struct {
	Key         events.RequestKey
	Fingerprint events.Fingerprint
	// Revision is where in the withdrawal's stream the claim was taken.
	Revision uint64
	Since    time.Time
	// Attempt is the one call of the rail under this claim; nil when none was
	// recorded, which proves that nothing was sent (A9).
	Attempt *Attempt
}

// Attempt is one call of a rail.
type Attempt struct {
	Number   int
	Rail     string
	Token    string
	Started  time.Time
	Deadline time.Time
	// Reported is events.ResultRefused or events.ResultUnknown once the attempt is
	// over and left no outcome; Detail then says why, and Ended when.
	Reported events.Result
	Detail   string
	Ended    time.Time
}

// Outcome is what happened to a withdrawal: final once recorded.
type Outcome struct {
	events.OutcomeResolved
	Withdrawal events.WithdrawalID
	// ResolvedAt and Actor say when it was recorded and on whose word.
	ResolvedAt time.Time
	Actor      string
}

// Same reports whether another result and reference are this outcome.
func (o Outcome) Same(result events.Result, reference string) bool {
	return o.Result == result && o.Reference == reference
}

// Dispute says that a rail's late answer contradicts the stream (B7).
type Dispute struct {
	events.LateOutcomeReported
	Since time.Time
}

// LateAnswer is a rail's answer that came when the stream had moved on: evidence (B7).
type LateAnswer struct {
	events.LateOutcomeReported
	At time.Time
}

// ClosedDispute is a dispute, and the person's word that closed it.
type ClosedDispute struct {
	Dispute
	ClosedAt time.Time
	ClosedBy string
	Reason   string
	Evidence string
}

// PastClaim is a claim that was released.
type PastClaim struct {
	Key        events.RequestKey
	Revision   uint64
	Attempt    int // 0 when nothing was attempted
	Since      time.Time
	ReleasedAt time.Time
	ReleasedBy string
	Reason     string
	Evidence   string
}

// Next returns the revision of the withdrawal's next event.
func (w Withdrawal) Next() uint64 { return w.next }

// Requested returns what was requested and when, and false when nothing was.
func (w Withdrawal) Requested() (events.WithdrawalRequested, time.Time, bool) {
	return w.requested, w.since, w.next > 0
}

// Identity returns what a key stands for that submits this withdrawal.
func (w Withdrawal) Identity() events.Identity {
	r := w.requested
	return events.Identity{Withdrawal: r.Withdrawal, Amount: r.Amount, Currency: r.Currency, Destination: r.Destination}
}

// Claim returns the live claim, and false when nobody holds the withdrawal.
func (w Withdrawal) Claim() (Claim, bool) {
	if w.claim == nil {
		return Claim{}, false
	}
	return *w.claim, true
}

// Outcome returns the outcome, and false when there is none.
func (w Withdrawal) Outcome() (Outcome, bool) {
	if w.outcome == nil {
		return Outcome{}, false
	}
	return *w.outcome, true
}

// Dispute returns the open dispute, and false when there is none.
func (w Withdrawal) Dispute() (Dispute, bool) {
	if w.dispute == nil {
		return Dispute{}, false
	}
	return *w.dispute, true
}

// PastClaims returns the claims that were released, oldest first.
func (w Withdrawal) PastClaims() []PastClaim { return w.past }

// LateAnswers returns the rail's answers that came late, oldest first.
func (w Withdrawal) LateAnswers() []LateAnswer { return w.late }

// ClosedDisputes returns the disputes that a person has closed, oldest first. What the
// rail said against the record stays on record.
func (w Withdrawal) ClosedDisputes() []ClosedDispute { return w.closed }

// Apply folds the next event of the withdrawal's stream. An error means that the stream
// is damaged: the event can not follow the ones before it.
func (w Withdrawal) Apply(r events.Recorded) (Withdrawal, error) {
	at := r.Metadata.RecordedAt.Time()
	next, err := w.apply(r, at)
	if err != nil {
		return w, err
	}
	next.next++
	return next, nil
}

func (w Withdrawal) apply(r events.Recorded, at time.Time) (Withdrawal, error) {
	impossible := func(why string) (Withdrawal, error) {
		return w, fmt.Errorf("%s can not be here: %s", r.Event.Type(), why)
	}
	e, requested := r.Event.(events.WithdrawalRequested)
	if requested != (w.next == 0) {
		return impossible("a withdrawal is requested once, first of all")
	}
	if requested {
		if e.Withdrawal.Stream() != r.Stream || events.MintWithdrawalID(e.Tenant, e.Account, e.Reference) != e.Withdrawal {
			return impossible("the withdrawal has another id than its stream")
		}
		w.requested, w.since = e, at
		return w, nil
	}
	switch e := r.Event.(type) {
	case events.KeyClaimed:
		if w.claim != nil {
			return impossible("the withdrawal is claimed")
		}
		if !e.Fingerprint.Matches(w.Identity()) {
			return impossible("the claim is for other details than were requested")
		}
		w.claim = &Claim{Key: e.Key, Fingerprint: e.Fingerprint, Revision: r.Revision, Since: at}
	case events.SendAttempted:
		if w.claim == nil || w.outcome != nil || w.claim.Attempt != nil || e.Attempt != w.attempts+1 {
			return impossible("an attempt is made once under a claim")
		}
		w.attempts = e.Attempt
		w.claim = w.claim.with(Attempt{Number: e.Attempt, Rail: e.Rail, Token: e.Token, Started: at, Deadline: e.Deadline.Time()})
	case events.SendRefused:
		return w.report(r, e.Attempt, events.ResultRefused, e.Reason, at)
	case events.SendUnconfirmed:
		return w.report(r, e.Attempt, events.ResultUnknown, e.Cause, at)
	case events.OutcomeResolved:
		return w.resolve(r, e, at)
	case events.Released:
		if w.claim == nil || w.claim.Key != e.Key || w.outcome != nil {
			return impossible("only a live claim without an outcome is released")
		}
		w.past = append(w.past[:len(w.past):len(w.past)], w.claim.released(e, at, r.Metadata.Actor))
		w.claim = nil
	case events.LateOutcomeReported:
		if e.Attempt > w.attempts {
			return impossible("there was no such attempt")
		}
		w.late = append(w.late[:len(w.late):len(w.late)], LateAnswer{LateOutcomeReported: e, At: at})
		if w.dispute == nil && w.contradicts(e) {
			w.dispute = &Dispute{LateOutcomeReported: e, Since: at}
		}
	default:
		return impossible("it belongs to another kind of stream")
	}
	return w, nil
}

// report folds the end of an attempt that left no outcome.
func (w Withdrawal) report(r events.Recorded, attempt int, result events.Result, detail string, at time.Time) (Withdrawal, error) {
	if !w.awaits(attempt) {
		return w, fmt.Errorf("%s can not be here: its attempt is not the one that is awaited", r.Event.Type())
	}
	ended := *w.claim.Attempt
	ended.Reported, ended.Detail, ended.Ended = result, detail, at
	w.claim = w.claim.with(ended)
	return w, nil
}

// resolve folds an outcome: the first one stays, a later one confirms it and closes a
// dispute.
func (w Withdrawal) resolve(r events.Recorded, e events.OutcomeResolved, at time.Time) (Withdrawal, error) {
	switch {
	case w.claim == nil || w.claim.Key != e.Key:
		return w, fmt.Errorf("%s can not be here: its key does not hold the claim", e.Type())
	case w.outcome != nil && (w.dispute == nil || e.Source != events.SourcePerson || !w.outcome.Same(e.Result, e.Reference)):
		return w, fmt.Errorf("%s can not be here: there is an outcome, and it stands", e.Type())
	case w.outcome == nil:
		w.outcome = &Outcome{OutcomeResolved: e, Withdrawal: w.requested.Withdrawal, ResolvedAt: at, Actor: r.Metadata.Actor}
	}
	if w.dispute != nil && e.Source == events.SourcePerson { // a person has looked
		w.closed = append(w.closed[:len(w.closed):len(w.closed)], ClosedDispute{
			Dispute: *w.dispute, ClosedAt: at, ClosedBy: r.Metadata.Actor, Reason: e.Reason, Evidence: e.Evidence,
		})
		w.dispute = nil
	}
	return w, nil
}

// awaits reports whether the numbered attempt is the live claim's, has not ended, and
// nobody has resolved the claim.
func (w Withdrawal) awaits(attempt int) bool {
	return w.claim != nil && w.outcome == nil && w.claim.Attempt != nil &&
		w.claim.Attempt.Number == attempt && w.claim.Attempt.Reported == ""
}

// contradicts reports whether a rail's late answer contradicts what the stream says
// (B7): money left after a release or a clean refusal, or another outcome than was
// resolved.
func (w Withdrawal) contradicts(late events.LateOutcomeReported) bool {
	own := w.claim != nil && w.claim.Attempt != nil && w.claim.Attempt.Number == late.Attempt
	switch {
	case late.Result == events.ResultSent && w.outcome != nil:
		return !w.outcome.Same(events.ResultSent, late.Reference)
	case late.Result == events.ResultSent:
		return !own || w.claim.Attempt.Reported == events.ResultRefused
	case late.Result == events.ResultRefused && w.outcome != nil:
		return own && w.outcome.Result == events.ResultSent
	}
	return false
}

func (c Claim) with(a Attempt) *Claim {
	c.Attempt = &a
	return &c
}

func (c Claim) released(e events.Released, at time.Time, actor string) PastClaim {
	past := PastClaim{Key: c.Key, Revision: c.Revision, Since: c.Since, ReleasedAt: at, ReleasedBy: actor, Reason: e.Reason, Evidence: e.Evidence}
	if c.Attempt != nil {
		past.Attempt = c.Attempt.Number
	}
	return past
}
