// Package simulated is a rail that keeps a durable book of its own, so that what really
// left can be counted: after a crash, across processes, and whatever the ledger
// believes. It fails on demand, in each of the ways a real rail does.
//
//	r, err := simulated.Open("book.jsonl", &simulated.Options{
//		Fault: func(p rail.Payment) simulated.Fault { return simulated.FaultErrorAfter },
//	})
//	...
//	_, err = r.Send(ctx, payment) // an error, and the money has left
//	left, err := simulated.Count("book.jsonl")
//	fmt.Println(left[payment.Withdrawal]) // 1
//
// The book is a file of JSON lines, one for each payment that left and one for each that
// was refused, oldest first. A line is written by one append under an advisory lock on
// the file, and is on the disk before Send returns. Any number of goroutines and
// processes share one book. A line is booked once its newline is there, and then the
// money has left, whatever becomes of the process.
//
// A process that dies in the middle of a write leaves a torn last line: as far as the
// book says, that money did not leave. Readers pass over it, and the next append
// removes it. A line that cannot be read anywhere else is a [*Damaged] error.
//
// Caveats. By default the rail does not honour the token: it pays whatever it is asked
// to pay, so that a ledger that asks twice is seen to have paid twice. References are
// random and say nothing of the payment. A withdrawal that is not in the book is
// unknown, which is not a no: a payment may still be on its way. A line that was
// written, and not flushed by the time the process was killed, counts as booked; only
// the loss of the whole machine could still take it back. With Options.HonourToken
// each send reads the whole book. A book edited by hand must end in a newline, or its
// last line is torn. The lock is flock, so the book must be on a local file system of a
// Unix.
package simulated
