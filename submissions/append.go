package submissions

import (
	"context"
	"errors"
	"time"

	"holdfast/aggregate"
	"holdfast/eventlog"
	"holdfast/events"
)

// subject is what a command acts on, as it was read: the claimant to decide for, and
// the streams to append to.
type subject struct {
	aggregate.Claimant
	key        folded[aggregate.RequestKey]
	withdrawal folded[aggregate.Withdrawal]
}

// read reads a key, then a withdrawal, then the withdrawal that the key's last
// reservation points at. The order is the protocol's: a withdrawal is never older than
// the reservations that were read before it.
func (l *Ledger) read(ctx context.Context, k events.RequestKey, id events.WithdrawalID) (subject, error) {
	s := subject{Claimant: aggregate.Claimant{Tenant: l.tenant, Key: k, Now: l.Clock()}}
	var err error
	if k != "" { // a request has no key
		if s.key, err = l.streams.key(ctx, l.tenant, k); err != nil {
			return s, err
		}
	}
	reserved, ok := s.key.state.Reserved()
	if id == "" {
		id = reserved // a command that names the key alone is about what the key stands for
	}
	if id != "" {
		if s.withdrawal, err = l.streams.withdrawal(ctx, id); err != nil {
			return s, err
		}
	}
	s.KeyState, s.Withdrawal, s.Reserved = s.key.state, s.withdrawal.state, s.withdrawal.state
	if ok && reserved != id {
		other, err := l.streams.withdrawal(ctx, reserved)
		if err != nil {
			return s, err
		}
		s.Reserved = other.state
	}
	return s, nil
}

// append writes a plan at the revisions that it was decided at, and moves the subject
// on to the state that follows. It returns errConflict when the plan has to be decided
// again, and a refusal otherwise.
func (c *core) append(ctx context.Context, s *subject, p aggregate.Plan, by By) error {
	now := c.Clock()
	var appends []eventlog.StreamAppend
	key, err := stage(c, &appends, s.key, p.Key, by.metadata(now))
	if err != nil {
		return err
	}
	withdrawal, err := stage(c, &appends, s.withdrawal, p.Withdrawal, by.metadata(now))
	if err != nil {
		return err
	}
	if err := c.write(ctx, appends); err != nil {
		for _, a := range appends {
			c.streams.forget(a.Stream)
		}
		return err
	}
	if len(p.Key) > 0 {
		key.remember(c.streams.keys)
	}
	if len(p.Withdrawal) > 0 {
		withdrawal.remember(c.streams.withdrawals)
	}
	s.key, s.withdrawal = key, withdrawal
	s.KeyState, s.Withdrawal = key.state, withdrawal.state
	return nil
}

// stage encodes the events of one stream and folds them, as they will be read.
func stage[S state[S]](c *core, appends *[]eventlog.StreamAppend, f folded[S], planned []events.Event, m events.Metadata) (folded[S], error) {
	if len(planned) == 0 {
		return f, nil
	}
	a := eventlog.StreamAppend{Stream: f.chain.Stream(), At: f.chain.Next()}
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

// errConflict says that another command was first: read and decide again.
var errConflict = errors.New("submissions: lost a race")

// write appends, and tries the very same bytes again for as long as it is not known
// whether they are in the log and the caller's time is not up.
func (c *core) write(ctx context.Context, appends []eventlog.StreamAppend) error {
	patient, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		_, err := c.log.Append(patient, appends...)
		var conflict *eventlog.Conflict
		switch {
		case err == nil:
			return nil
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

// decide reads, decides and appends until no other command comes in between. The
// subject it returns is as it was after the append, with the plan that was appended,
// which is empty when there was nothing to write.
func (l *Ledger) decide(ctx context.Context, k events.RequestKey, id events.WithdrawalID, by By,
	decision func(aggregate.Claimant) (aggregate.Plan, error)) (subject, aggregate.Plan, error) {
	for range maxRounds {
		s, err := l.read(ctx, k, id)
		if err != nil {
			return s, aggregate.Plan{}, err
		}
		plan, err := decision(s.Claimant)
		if err != nil {
			return s, aggregate.Plan{}, refusalOf(err)
		}
		if plan.Empty() {
			return s, plan, nil
		}
		if err = l.append(ctx, &s, plan, by); err == nil || !errors.Is(err, errConflict) {
			return s, plan, err
		}
		if err := ctx.Err(); err != nil {
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
