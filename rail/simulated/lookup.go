package simulated

import (
	"context"
	"fmt"

	"holdfast/events"
	"holdfast/rail"
)

// LookUp says what the book has of the withdrawal, whose id must match exactly. A
// payment that left makes it sent, under the first reference; Detail says when there are
// several. It is refused when every attempt up to the latest in the book was refused.
// Anything else is unknown: an attempt that is not in the book may still be on its way.
// Its errors are those of [Entries], and the context's.
func (r *Rail) LookUp(ctx context.Context, withdrawal events.WithdrawalID) (rail.Knowledge, error) {
	if ctx.Err() != nil {
		return rail.Knowledge{}, ended(ctx)
	}
	var first, refused Entry // the first payment, the latest attempt that was refused
	payments := 0
	refusals := make(map[int]bool) // by attempt
	for e, err := range Entries(r.book.path) {
		switch {
		case err != nil:
			return rail.Knowledge{}, err
		case ctx.Err() != nil:
			return rail.Knowledge{}, ended(ctx)
		case e.Withdrawal != withdrawal:
		case e.Refused:
			refusals[e.Attempt] = true
			if e.Attempt >= refused.Attempt {
				refused = e
			}
		default:
			if payments == 0 {
				first = e
			}
			payments++
		}
	}
	switch {
	case payments > 0:
		return sentAs(first, payments), nil
	case len(refusals) == 0:
		return rail.Knowledge{
			Verdict: rail.VerdictUnknown,
			Detail:  "the withdrawal is not in the rail's book; a payment may still be on its way",
		}, nil
	}
	k := rail.Knowledge{Verdict: rail.VerdictRefused, Attempt: refused.Attempt}
	k.Detail = fmt.Sprintf("attempt %d was refused at %s: %s",
		refused.Attempt, refused.Time.Format(timeLayout), refused.Reason)
	if len(refusals) < refused.Attempt {
		k.Verdict, k.Attempt = rail.VerdictUnknown, 0
		k.Detail += "; an earlier attempt is not in the rail's book, and may still be on its way"
	}
	return k, nil
}

// sentAs is what the rail knows of a withdrawal that left so many times.
func sentAs(first Entry, payments int) rail.Knowledge {
	detail := fmt.Sprintf("attempt %d left at %s", first.Attempt, first.Time.Format(timeLayout))
	if payments > 1 {
		detail = fmt.Sprintf("%d payments left for this withdrawal; first, %s", payments, detail)
	}
	return rail.Knowledge{
		Verdict:   rail.VerdictSent,
		Reference: first.Reference,
		Attempt:   first.Attempt,
		Detail:    detail,
	}
}
