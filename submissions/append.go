package submissions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// subject is what a command acts on, as it was read: a key, a withdrawal, and the
// withdrawal that the key's last reservation points at.
type subject struct {
	now        time.Time
	key        folded[aggregate.RequestKey]
	withdrawal folded[aggregate.Withdrawal]
	reserved   aggregate.Withdrawal
}

// claimant is the subject as decisions see it.
func (l *Ledger) claimant(k events.RequestKey, s *subject) aggregate.Claimant {
	return aggregate.Claimant{
		Tenant: l.tenant, Key: k, Now: s.now, KeyState: s.key.state, Withdrawal: s.withdrawal.state, Reserved: s.reserved,
	}
}

// read reads a key, then a withdrawal, then the withdrawal that the key's last
// reservation points at. The order is the protocol's: a withdrawal is never older than
// the reservations that were read before it.
func (l *Ledger) read(ctx context.Context, k events.RequestKey, id events.WithdrawalID) (s subject, err error) {
	s.now = l.Clock()
	if k != "" { // a request has no key
		if s.key, err = l.streams.key(ctx, l.tenant, k); err != nil {
			return s, err
		}
	}
	reserved, used := s.key.state.Reserved()
	if id == "" {
		id = reserved // a command that names the key alone is about what the key stands for
	}
	if id != "" {
		if s.withdrawal, err = l.streams.withdrawal(ctx, id); err != nil {
			return s, err
		}
	}
	s.reserved = s.withdrawal.state
	if used && reserved != id {
		other, err := l.streams.withdrawal(ctx, reserved)
		if err != nil {
			return s, err
		}
		s.reserved = other.state
	}
	return s, l.act(ctx)
}

// recall is read from memory alone: a guess at what the log holds. What is not
// remembered is taken for not there.
func (l *Ledger) recall(k events.RequestKey, id events.WithdrawalID) (s subject) {
	s.now = l.Clock()
	if k != "" {
		s.key = recall(l.streams, l.streams.keys, k.Stream(l.tenant))
	}
	s.withdrawal = recall(l.streams, l.streams.withdrawals, id.Stream())
	return s
}

// proven reports whether a plan that was decided from a guess can be appended: its
// append is then at the head of every stream that it was decided from, and goes through
// only if the guess was right. A key that was used before points at further streams.
func (s *subject) proven(k events.RequestKey, p aggregate.Plan) bool {
	_, used := s.key.state.Reserved()
	known := s.withdrawal.state.Next() > 0
	return known && len(p.Withdrawal) > 0 && !used && (k == "" || len(p.Key) > 0)
}

// staged is a plan as it is going to be appended: its bytes, and what the streams are once
// they are in the log.
type staged struct {
	appends    []eventlog.StreamAppend
	key        folded[aggregate.RequestKey]
	withdrawal folded[aggregate.Withdrawal]
}

// stage encodes a plan at the revisions that it was decided at.
func (c *core) stage(key folded[aggregate.RequestKey], withdrawal folded[aggregate.Withdrawal], p aggregate.Plan, by By) (s staged, err error) {
	m := by.metadata(c.Clock())
	s.appends = make([]eventlog.StreamAppend, 0, 2)
	if s.key, err = stage(c, &s.appends, key, p.Key, m); err != nil {
		return s, err
	}
	s.withdrawal, err = stage(c, &s.appends, withdrawal, p.Withdrawal, m)
	return s, err
}

// commit appends what was staged. It returns errConflict when that has to be decided
// again, and a refusal otherwise; an unavailable one says that it may be in the log, and
// then only these very bytes may be tried again.
func (c *core) commit(ctx context.Context, s staged) error {
	err := c.write(ctx, s.appends)
	for _, a := range s.appends {
		switch {
		case err != nil:
			c.streams.forget(a.Stream)
		case a.Stream == s.withdrawal.chain.Stream():
			s.withdrawal.remember(c.streams.withdrawals)
		default:
			s.key.remember(c.streams.keys)
		}
	}
	return err
}

// append writes a plan, and moves the streams on to the state that follows. Its errors
// are commit's.
func (c *core) append(ctx context.Context, key *folded[aggregate.RequestKey], withdrawal *folded[aggregate.Withdrawal], p aggregate.Plan, by By) error {
	s, err := c.stage(*key, *withdrawal, p, by)
	if err != nil {
		return err
	}
	if err := c.commit(ctx, s); err != nil {
		return err
	}
	*key, *withdrawal = s.key, s.withdrawal
	return nil
}

// stage encodes the events of one stream and folds them, as they will be read.
func stage[S state[S]](c *core, appends *[]eventlog.StreamAppend, f folded[S], planned []events.Event, m events.Metadata) (folded[S], error) {
	if len(planned) == 0 {
		return f, nil
	}
	a := eventlog.StreamAppend{Stream: f.chain.Stream(), At: f.chain.Next(), Events: make([]eventlog.Event, 0, len(planned))}
	for _, e := range planned {
		stored, recorded, err := f.chain.Append(c.NewID(), e, m)
		if err != nil {
			return f, aggregate.Invalid(err)
		}
		if err := f.apply(recorded); err != nil {
			return f, refusalOf(err)
		}
		f.bytes += len(stored.Data) + len(stored.Metadata)
		a.Events = append(a.Events, eventlog.Event{ID: stored.ID, Type: stored.Type, Data: stored.Data, Metadata: stored.Metadata})
	}
	*appends = append(*appends, a)
	return f, nil
}

var (
	// errConflict says that another command was first: read and decide again.
	errConflict = errors.New("submissions: lost a race")
	// errUnseen is the errConflict of a race that was lost to what cannot be read yet. A
	// cluster decides against appends that are not on enough of its nodes yet, and that
	// may still be lost with their node.
	errUnseen = fmt.Errorf("%w, and who won it cannot be read yet", errConflict)
)

// write appends, and tries the very same bytes again for as long as it is not known
// whether they are in the log and the caller's time is not up.
func (c *core) write(ctx context.Context, appends []eventlog.StreamAppend) error {
	patient, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	unknown := false // whether an earlier try may still come to something
	for pause := time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		_, err := c.log.Append(patient, appends...)
		if err == nil {
			return nil
		}
		unknown = unknown || errors.Is(err, eventlog.ErrUnknownResult)
		var conflict *eventlog.Conflict
		switch {
		case errors.As(err, &conflict) && conflict.Actual == nil && unknown:
			// What it lost to may be lost itself, and the earlier try stand.
		case errors.As(err, &conflict) && conflict.Actual == nil:
			return errUnseen
		case errors.As(err, &conflict):
			return errConflict
		case !errors.Is(err, eventlog.ErrUnknownResult) && !errors.Is(err, eventlog.ErrNotExecuted):
			return refusalOf(err)
		}
		select {
		case <-patient.Done():
			return unavailable(errors.Join(err, context.Cause(patient)))
		case <-time.After(pause):
		}
	}
}

// carryOut appends the plan of a command, where the log is a ledger. The rail's answer to
// an attempt does not come by here: it is recorded wherever its claim is (B7).
func (l *Ledger) carryOut(ctx context.Context, s *subject, p aggregate.Plan, by By) error {
	if err := l.act(ctx); err != nil {
		return err
	}
	return l.append(ctx, &s.key, &s.withdrawal, p, by)
}

// decide reads, decides and appends until no other command comes in between. The
// subject it returns is as it was after the append, with the plan that was appended,
// which is empty when there was nothing to write.
//
// The first decision is made from memory, because most commands come shortly after
// another one of this process about the same withdrawal. It counts only if the append
// proves it; a refusal or a replay is never told without a look at the log.
func (l *Ledger) decide(ctx context.Context, k events.RequestKey, id events.WithdrawalID, by By,
	decision func(aggregate.Claimant) (aggregate.Plan, error)) (subject, aggregate.Plan, error) {
	if s := l.recall(k, id); id != "" {
		if plan, err := decision(l.claimant(k, &s)); err == nil && s.proven(k, plan) {
			if err := l.carryOut(ctx, &s, plan, by); !errors.Is(err, errConflict) {
				return s, plan, err
			}
		}
	}
	unseen := 0
	for range maxRounds {
		s, err := l.read(ctx, k, id)
		if err != nil {
			return s, aggregate.Plan{}, err
		}
		plan, err := decision(l.claimant(k, &s))
		if err != nil {
			return s, aggregate.Plan{}, refusalOf(err)
		}
		if plan.Empty() {
			return s, plan, nil
		}
		if err = l.carryOut(ctx, &s, plan, by); err == nil || !errors.Is(err, errConflict) {
			return s, plan, err
		}
		if errors.Is(err, errUnseen) {
			if unseen++; unseen == maxUnseen {
				return s, aggregate.Plan{}, notSeen()
			}
			sleep(ctx, unseenPause<<unseen)
		}
		if ctx.Err() != nil {
			return s, aggregate.Plan{}, unavailable(context.Cause(ctx))
		}
	}
	return subject{}, aggregate.Plan{}, unavailable(errConflict)
}

// unavailable is the refusal of a command that could not be carried out, or of which it
// is not known whether it was.
func unavailable(cause error) *Refusal {
	return &Refusal{Code: aggregate.CodeUnavailable, Cause: cause,
		Message: "the log cannot be reached, or did not say whether it took the append; the same key is safe to retry"}
}

// notSeen is the refusal of a command that somebody else was before, where the log cannot
// say yet who. Nothing is known of the key then, and nothing was sent.
func notSeen() *Refusal {
	return &Refusal{Code: aggregate.CodeUnavailable, Cause: errUnseen,
		Message: "another command was first, and the log cannot say yet which: the withdrawal or the key may be claimed, its holder is not known yet; the same key is safe to retry"}
}

// sleep waits, and no longer than the context lasts.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// refusalOf gives every error of the packages below its code.
func refusalOf(err error) error {
	var refusal *Refusal
	var damage *events.Damage
	var damaged *eventlog.Damaged
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &damage), errors.As(err, &damaged):
		return &Refusal{Code: aggregate.CodeDamaged, Cause: err, Message: "the record is damaged, and no command may act on it"}
	}
	return unavailable(err)
}
