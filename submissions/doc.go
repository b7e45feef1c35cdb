// Package submissions is the command side of holdfast, usable as a library: request a
// withdrawal, submit it at most once, resolve or release what is in flight, and look up
// the truth about it. It runs the claim protocol: the claim is on disk before the rail
// hears of the payment, and nothing in a process's memory is trusted.
//
//	ledger, err := submissions.New(log, nil)
//	w, err := ledger.Request(ctx, submissions.Request{
//		Account: "alice", Reference: "order-17",
//		Amount: "10.25", Currency: "EUR", Destination: "DE89370400440532013000",
//	})
//	outcome, err := ledger.Submit(ctx, "req-1", w.ID, send, nil)
//
// However often, by whoever and under whichever key that last line runs, send is called
// at most once under a claim, and everybody is told what came of it. An error is always
// a [*Refusal], whose Code says what to do:
//
//   - withdrawal-claimed: another key holds it; Holder says which.
//   - in-flight: this key's send is under way, or a person has to look.
//   - outcome-unknown: this call's send failed, and nobody knows whether the money left.
//   - unavailable: nothing is known; calling again with the same key is safe.
//
// Caveats. A send that failed keeps its claim: an error says that the call failed, not
// that the money stayed. Only a person frees or closes it, by Release or Resolve;
// nothing expires. A Submit whose context ends returns at once, or a moment later, and
// the answer of a rail that is still at it is recorded when it comes: see Close.
package submissions
