// Package rail is the port through which money leaves: a bank, a chain, an internal
// book. An adapter sends one [Payment] and says which of three things happened.
//
//   - Sent: it returns a [Receipt] with the rail's reference, and no error.
//   - Refused: it returns a [*Refusal], which asserts that nothing left and nothing
//     will. Only an adapter that knows this for certain may say so.
//   - Anything else, whatever the error, is unknown: an error says that the call
//     failed, not that the money stayed.
//
// A [Sender] is a plain function, so that a caller's own code is a rail:
//
//	send := func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
//		tx, err := bank.Transfer(ctx, p.Destination, p.Amount.String(), p.Token)
//		switch {
//		case errors.Is(err, bank.ErrAccountClosed):
//			return rail.Receipt{}, &rail.Refusal{Reason: "account closed"} // nothing left
//		case err != nil:
//			return rail.Receipt{}, err // nobody knows
//		}
//		return rail.Receipt{Reference: tx.ID}, nil
//	}
//
// Caveats. A Sender must hand Payment.Token on as the rail's own idempotency key
// where the rail has one. It must end when its context does; if it does not, its
// answer still counts and is recorded when it comes.
package rail
