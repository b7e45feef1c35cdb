package simulated

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/events"
)

// Fault is a way for one send to fail, by the name it has on the command line. The zero
// value is FaultNone.
type Fault string

const (
	// FaultNone sends the payment.
	FaultNone Fault = "none"
	// FaultRefuse books a refusal and returns it as a *rail.Refusal: nothing left.
	FaultRefuse Fault = "refuse"
	// FaultErrorBefore returns ErrFault, and nothing left.
	FaultErrorBefore Fault = "error-before"
	// FaultErrorAfter returns ErrFault once the money has left.
	FaultErrorAfter Fault = "error-after"
	// FaultTimeoutBefore sends nothing, waits for the context to end and returns its
	// error. A context without an end is waited for for ever.
	FaultTimeoutBefore Fault = "timeout-before"
	// FaultTimeoutAfter lets the money leave, then waits for the context to end and
	// returns its error.
	FaultTimeoutAfter Fault = "timeout-after"
	// FaultLate waits for the context to end and for Options.Late after that. Only
	// then does the money leave, and a good receipt comes back, as from a process that
	// was suspended past its deadline.
	FaultLate Fault = "late"
	// FaultDieBefore kills the process with SIGKILL, and nothing left.
	FaultDieBefore Fault = "die-before"
	// FaultDieAfter kills the process with SIGKILL once the money has left.
	FaultDieAfter Fault = "die-after"
	// FaultPanicBefore panics, and nothing left.
	FaultPanicBefore Fault = "panic-before"
	// FaultPanicAfter panics once the money has left.
	FaultPanicAfter Fault = "panic-after"
	// FaultNoReference lets the money leave and returns a receipt without a reference.
	// The book has the reference.
	FaultNoReference Fault = "no-reference"
)

// Faults returns every fault, in the order of their description.
func Faults() []Fault {
	return []Fault{
		FaultNone, FaultRefuse,
		FaultErrorBefore, FaultErrorAfter,
		FaultTimeoutBefore, FaultTimeoutAfter, FaultLate,
		FaultDieBefore, FaultDieAfter,
		FaultPanicBefore, FaultPanicAfter,
		FaultNoReference,
	}
}

// ParseFault returns the fault of that exact name. The error for any other name lists
// the names there are.
func ParseFault(name string) (Fault, error) {
	f := Fault(name)
	if !slices.Contains(Faults(), f) {
		names := make([]string, 0, len(Faults()))
		for _, f := range Faults() {
			names = append(names, string(f))
		}
		return "", fmt.Errorf("fault %s is not one of %s", events.Quote(name), strings.Join(names, ", "))
	}
	return f, nil
}
